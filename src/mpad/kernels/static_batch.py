"""Batches of static shapes: a whole epoch is cut at once, every step with the same shapes.

A GPU can replay a step that it has recorded, if the step's tensors keep their shapes. So each model's part of a batch
gets room for so many words, graphs and documents, and a dummy document owns what stays empty. A batch does not copy
edges: its nodes point into the corpus.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from mpad.graph.batch import CorpusTensors


@dataclass(frozen=True)
class BatchShape:
    """Sizes of each model's part of a batch, including the dummy document."""

    nodes: int
    graphs: int
    documents: int

    def fields(self) -> tuple[int, ...]:
        """Return the size of each field of a model, in the order of StaticBatch."""
        n, g, d = self.nodes, self.graphs, self.documents
        return n, n, g, g, g, d, d, d


class StaticCorpus:
    """A corpus that is cut into whole epochs."""

    def __init__(self, corpus: CorpusTensors) -> None:
        self.tensors = corpus
        self.words, self.rows = corpus.words, corpus.rows
        self.edges: dict[tuple[bool, bool], tuple[Tensor, ...]] = {}  # as operators want them, prepared once

    def cut(self, documents: Tensor, size: BatchShape) -> Tensor:
        """Cut an epoch: (steps, models, documents − 1) int64, -1 for none → (steps, fields of a step) int32."""
        corpus = self.tensors
        steps, models, slots = documents.shape
        document = documents.view(steps * models, slots)
        known, asked = document >= 0, document.clamp(min=0)
        count = torch.where(known, corpus.n_graphs[asked], 0)
        slot, place, inside = _members(count, size.graphs)
        graph = torch.where(inside, corpus.first_graph[asked.gather(1, slot)] + place, 0)
        nodes = torch.where(inside, corpus.n_nodes[graph], 0)
        owner, place, real = _members(nodes, size.nodes)
        node = torch.where(real, corpus.first_node[graph.gather(1, owner)] + place, -1)
        end = nodes.cumsum(1)
        base = end - nodes
        base[:, -1], nodes[:, -1] = end[:, -1], size.nodes - end[:, -1]
        first, all_graphs = count.cumsum(1) - count, count.sum(1, keepdim=True)
        none = torch.full_like(all_graphs, -1)
        fields = (
            node,
            torch.where(real, owner, size.graphs - 1),
            base,
            nodes,
            torch.where(inside, slot, size.documents - 1),
            torch.cat([first, all_graphs], dim=1),
            torch.cat([count, size.graphs - all_graphs], dim=1),
            torch.cat([document, none], dim=1),
        )
        return torch.cat([field.view(steps, -1) for field in fields], dim=1).int()

    def batch(self, step: Tensor, models: int, size: BatchShape) -> "StaticBatch":
        """Return one step of a plan, as views of its fields."""
        parts = step.split([models * field for field in size.fields()])
        return StaticBatch(self, *[part.view(models, -1) for part in parts])


def _members(count: Tensor, n_places: int) -> tuple[Tensor, Tensor, Tensor]:
    """Lay runs of lengths `count` (models, runs) one after another in `n_places` places.

    Returns per place its run, its position in the run, and whether it is used.
    """
    end = count.cumsum(1)
    places = torch.arange(n_places, device=count.device).expand(count.shape[0], n_places).contiguous()
    run = torch.searchsorted(end, places, right=True)
    inside = run < count.shape[1]
    run = run.clamp(max=count.shape[1] - 1)
    return run, places - (end - count).gather(1, run), inside


@dataclass(frozen=True)
class StaticBatch:
    """One step's documents of several models; indices are int32, within a model."""

    corpus: StaticCorpus
    node: Tensor  # (n_models, nodes), node of the corpus; -1 where it only fills up
    owner_in_model: Tensor  # (n_models, nodes), graph
    base: Tensor  # (n_models, graphs), first node
    size_in_model: Tensor  # (n_models, graphs), nodes
    document_of_graph: Tensor  # (n_models, graphs)
    first_graph: Tensor  # (n_models, documents)
    n_graphs_of_document: Tensor  # (n_models, documents)
    document: Tensor  # (n_models, documents), document of the corpus; -1 where there is none

    @property
    def rows(self) -> Tensor | None:
        """Features of nodes, if they are not word vectors: (rows, width)."""
        return self.corpus.rows

    @cached_property
    def graph_owner(self) -> Tensor:
        """(n_graphs,) int64, document of each graph, counted over the whole batch."""
        models, documents = self.document.shape
        return (
            self.document_of_graph + torch.arange(models, device=self.document.device)[:, None] * documents
        ).flatten()

    @property
    def graph_count(self) -> Tensor:
        """(n_documents,) graphs of each document."""
        return self.n_graphs_of_document.flatten()

    @cached_property
    def word_mask(self) -> Tensor:
        """(n_models, nodes, 1), 0 for padding, as in the other masks."""
        return (self.node >= 0).float()[..., None]

    @cached_property
    def graph_mask(self) -> Tensor:
        """(n_models, graphs, 1)."""
        return (self.document_of_graph < self.document.shape[1] - 1).float()[..., None]

    @cached_property
    def document_mask(self) -> Tensor:
        """(n_models, documents, 1)."""
        return (self.document >= 0).float()[..., None]
