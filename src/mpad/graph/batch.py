"""Some documents of a packed corpus → one batch: one big disconnected graph, never padded.

The corpus lives on the device as a few flat tensors, and a batch is cut out of them by index arithmetic on whole
arrays. So a document's answer never depends on its neighbours in the batch, and one document alone is ordinary.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mpad.graph.compiled import take
from mpad.graph.packed import PackedGraphs

_IN_FULL = 1 << 30  # bytes of features that are not kept in half precision


@dataclass(frozen=True)
class GraphBatch:
    """Some documents as one graph with many components."""

    words: Tensor  # (n_nodes,) int64, each node's row in the table of word vectors, or in `rows`
    owner: Tensor  # (n_nodes,) int64, graph of each node
    size: Tensor  # (n_graphs,) int64, nodes of each graph
    source: Tensor  # (n_edges,) int64, node
    target: Tensor  # (n_edges,) int64, node
    weight: Tensor  # (n_edges,) float32
    graph_owner: Tensor  # (n_graphs,) int64, document of each graph
    graph_count: Tensor  # (n_documents,) int64, graphs of each document
    rows: Tensor | None = None  # (rows, width), what nodes start from where that is not the vector of their word

    @property
    def n_words(self) -> int:
        """Nodes that are words, in the batch."""
        return self.words.shape[0]

    @property
    def n_graphs(self) -> int:
        """Graphs in the batch."""
        return self.size.shape[0]

    @property
    def n_documents(self) -> int:
        """Documents in the batch."""
        return self.graph_count.shape[0]


class CorpusTensors:
    """A packed corpus on a device."""

    def __init__(self, graphs: PackedGraphs, device: torch.device | str = "cpu") -> None:
        def tensor(array: np.ndarray) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

        self.device = torch.device(device)
        self.words = tensor(graphs.words)
        self.rows: Tensor | None = None
        if graphs.features is not None:  # a node is a row of its own
            self.words = torch.arange(len(graphs.words), dtype=torch.int32, device=device)
            self.rows = tensor(graphs.features)
            if graphs.features.nbytes <= _IN_FULL:  # single precision, which compiled operators ask for
                self.rows = self.rows.float()
        self.source, self.target, self.weight = (
            tensor(graphs.source),
            tensor(graphs.target),
            tensor(graphs.weight),
        )
        self.first_node, self.n_nodes = _runs(tensor(graphs.node_start))
        self.first_edge, self.n_edges = _runs(tensor(graphs.edge_start))
        self.first_graph, self.n_graphs = _runs(tensor(graphs.document_start))
        starts = self.first_graph, self.n_graphs, self.first_node, self.n_nodes, self.first_edge, self.n_edges
        self._arrays = self.words, self.source, self.target, self.weight, *starts
        kinds = [torch.int32] * 3 + [torch.float32] + [torch.int64] * 6
        self._compiled = self.device.type == "cpu" and [array.dtype for array in self._arrays] == kinds

    def __len__(self) -> int:
        return self.first_graph.shape[0]

    def document_sizes(self, documents: Tensor) -> Tensor:
        """Words, each graph's master node counted with them, of some documents: (n,) int64."""
        before = torch.cat([self.n_nodes.new_zeros(1), (self.n_nodes + 1).cumsum(0)])
        first = self.first_graph[documents]
        return before[first + self.n_graphs[documents]] - before[first]

    def take(self, documents: Tensor) -> GraphBatch:
        """Cut out these documents, in this order."""
        parts = take(self._arrays, documents) if self._compiled else None
        if parts is not None:
            words, owner, size, source, target, graph_owner, graph_count, weight = parts
            return GraphBatch(words, owner, size, source, target, weight, graph_owner, graph_count, rows=self.rows)
        graph_count = self.n_graphs[documents]
        graphs, graph_owner = members(self.first_graph[documents], graph_count)
        size, edge_count = self.n_nodes[graphs], self.n_edges[graphs]
        nodes, owner = members(self.first_node[graphs], size)
        edges, edge_owner = members(self.first_edge[graphs], edge_count)
        shift = (size.cumsum(0) - size)[edge_owner]  # from "node of its graph" to "node of the batch"
        return GraphBatch(
            words=self.words[nodes].long(),
            owner=owner,
            size=size,
            source=self.source[edges] + shift,
            target=self.target[edges] + shift,
            weight=self.weight[edges],
            graph_owner=graph_owner,
            graph_count=graph_count,
            rows=self.rows,
        )


def _runs(starts: Tensor) -> tuple[Tensor, Tensor]:
    return starts[:-1], starts.diff()


def members(first: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Members of runs that begin at `first` and are `count` long, and the run that each belongs to."""
    owner = torch.repeat_interleave(count)
    shift = first - (count.cumsum(0) - count)
    return torch.arange(owner.shape[0], device=first.device) + shift[owner], owner
