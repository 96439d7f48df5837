"""Batches: some documents of a packed corpus as one large disconnected graph, without padding.

The corpus is a few flat tensors on the device, and a batch is cut out of them by index arithmetic. A document's logits
do not depend on the other documents of its batch.
"""

import ctypes
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mpad import native
from mpad.graph.packed import PackedGraphs

_IN_FULL = 1 << 30  # largest size of features in bytes that are converted to single precision
_CORPUS = (
    *("words", "source", "target", "weight"),
    *("first_graph", "n_graphs", "first_node", "n_nodes", "first_edge", "n_edges"),
)
_BATCH = "words", "owner", "size", "source", "target", "graph_owner", "graph_count", "weight"


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
    rows: Tensor | None = None  # (rows, width), initial states of nodes, instead of the vectors of their words

    @property
    def n_words(self) -> int:
        """Number of word nodes in the batch."""
        return self.words.shape[0]

    @property
    def n_graphs(self) -> int:
        """Number of graphs in the batch."""
        return self.size.shape[0]

    @property
    def n_documents(self) -> int:
        """Number of documents in the batch."""
        return self.graph_count.shape[0]


class CorpusTensors:
    """A packed corpus on a device."""

    def __init__(self, graphs: PackedGraphs, device: torch.device | str = "cpu") -> None:
        def tensor(array: np.ndarray) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

        self.device = torch.device(device)
        self.words = tensor(graphs.words)
        self.rows: Tensor | None = None
        if graphs.features is not None:  # each node has a row of its own
            self.words = torch.arange(len(graphs.words), dtype=torch.int32, device=device)
            self.rows = tensor(graphs.features)
            if graphs.features.nbytes <= _IN_FULL:  # compiled operators need single precision
                self.rows = self.rows.float()
        self.source, self.target, self.weight = tensor(graphs.source), tensor(graphs.target), tensor(graphs.weight)
        self.first_node, self.n_nodes = _runs(tensor(graphs.node_start))
        self.first_edge, self.n_edges = _runs(tensor(graphs.edge_start))
        self.first_graph, self.n_graphs = _runs(tensor(graphs.document_start))
        self._arrays = {name: getattr(self, name) for name in _CORPUS}
        kinds = [torch.int32] * 3 + [torch.float32] + [torch.int64] * 6
        self._compiled = self.device.type == "cpu" and [array.dtype for array in self._arrays.values()] == kinds

    def __len__(self) -> int:
        return self.first_graph.shape[0]

    def document_sizes(self, documents: Tensor) -> Tensor:
        """Return the number of nodes of some documents, master nodes included: (n,) int64."""
        before = torch.cat([self.n_nodes.new_zeros(1), (self.n_nodes + 1).cumsum(0)])
        first = self.first_graph[documents]
        return before[first + self.n_graphs[documents]] - before[first]

    def take(self, documents: Tensor) -> GraphBatch:
        """Return the batch of these documents, in this order."""
        parts = _take_compiled(self._arrays, documents) if self._compiled else None
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
    """Return the elements of runs that begin at `first` and are `count` long, and the run of each element."""
    owner = torch.repeat_interleave(count)
    shift = first - (count.cumsum(0) - count)
    return torch.arange(owner.shape[0], device=first.device) + shift[owner], owner


def _take_compiled(corpus: dict[str, Tensor], documents: Tensor) -> list[Tensor] | None:
    """Cut documents out of a corpus by native/batch.h: the tensors of _BATCH, or None if that is not possible."""
    if documents.dtype != torch.int64:
        return None
    documents = documents.contiguous()
    source = native.pack("corpus", **corpus, documents=len(corpus["first_graph"]))
    chosen, n = ctypes.c_void_p(documents.data_ptr()), ctypes.c_long(len(documents))
    counts = (ctypes.c_long * 3)()
    library = native.library
    if library is None or not library.mpad_count(ctypes.byref(source), chosen, n, counts):
        return None
    graphs, nodes, edges = counts
    sizes = nodes, nodes, graphs, edges, edges, graphs, len(documents)
    parts = [*torch.empty(sum(sizes), dtype=torch.int64, device="cpu").split(sizes), corpus["weight"].new_empty(edges)]
    batch = native.pack("batch", **dict(zip(_BATCH, parts, strict=True)))
    library.mpad_take(ctypes.byref(source), chosen, n, ctypes.byref(batch))
    return parts
