"""Packed graphs: the word graphs of a corpus as flat arrays, from the builder to the batch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError

Array = NDArray[Any]


@dataclass(frozen=True)
class PackedGraphs:
    """The word graphs of a corpus as flat arrays: graph g owns nodes node_start[g]:node_start[g + 1].

    A node is a distinct word of its graph; nodes are sorted by word id. An edge u → v means "u then v". The master
    node is not stored: it is linked to every node of its graph, both ways, with weight 1. A document owns one graph,
    or one per sentence in the hierarchical variants.
    """

    words: Array  # (n_nodes,) int32, word id of each node
    node_start: Array  # (n_graphs + 1,) int64
    source: Array  # (n_edges,) int32, node counted from the start of its own graph; edges sorted by target
    target: Array  # (n_edges,) int32, likewise
    weight: Array  # (n_edges,) float32, co-occurrence count
    edge_start: Array  # (n_graphs + 1,) int64
    document_start: Array  # (n_documents + 1,) int64, into graphs
    count: Array | None = None  # (n_nodes,) int32, occurrences of each word in its graph; None: once each
    new_words: tuple[tuple[int, ...], ...] = ()  # piece ids of the word in each used spare row
    features: Array | None = None  # (n_nodes, width) float16, initial state of each node; None: its word's vector

    def __post_init__(self) -> None:
        """Raise if the arrays are inconsistent: compiled code uses these numbers without checks."""
        for name, last in (("node_start", len(self.words)), ("edge_start", len(self.source)), ("document_start", None)):
            starts = getattr(self, name)
            end = self.n_graphs if last is None else last
            if len(starts) < 1 or starts[0] != 0 or starts[-1] != end or (starts[1:] < starts[:-1]).any():
                raise InputError(f"{name} must rise from 0 to {end:,}")
        if self.count is not None and len(self.count) != len(self.words):
            raise InputError("every node has a count, or none has")
        if self.features is not None and len(self.features) != len(self.words):
            raise InputError("every node has features, or none has")
        if not len(self.source) == len(self.target) == len(self.weight) or len(self.edge_start) != self.n_graphs + 1:
            raise InputError("every edge has a source, a target and a weight, and every graph a run of edges")
        if len(self.source):
            size = (self.node_start[1:] - self.node_start[:-1]).repeat(self.edge_start[1:] - self.edge_start[:-1])
            low = min(int(self.source.min()), int(self.target.min()))
            if low < 0 or (self.source >= size).any() or (self.target >= size).any():
                raise InputError("an edge leads to a node that its graph does not have")

    @classmethod
    def built(cls, **arrays: Any) -> "PackedGraphs":
        """Return graphs of arrays that are consistent by construction, without checks."""
        graphs = object.__new__(cls)
        graphs.__dict__.update(arrays)
        return graphs

    def __len__(self) -> int:
        return len(self.document_start) - 1

    @property
    def n_graphs(self) -> int:
        """Number of graphs in the corpus: one per document or per sentence."""
        return len(self.node_start) - 1

    def document_sizes(self) -> Array:
        """Return the number of nodes of each document, without master nodes: (n_documents,)."""
        return np.diff(self.node_start[self.document_start])


def concatenate(parts: list[PackedGraphs]) -> PackedGraphs:
    """Concatenate corpora."""
    if len(parts) == 1:
        return parts[0]

    def starts(name: str) -> Array:
        arrays = [getattr(part, name) for part in parts]
        offsets = np.cumsum([0, *[array[-1] for array in arrays]])
        shifted = [array[1:] + offset for array, offset in zip(arrays, offsets[:-1], strict=True)]
        return np.concatenate([np.zeros(1, np.int64), *shifted])

    def values(name: str, kind: type[np.generic]) -> Array:
        return np.concatenate([np.zeros(0, kind), *[getattr(part, name) for part in parts]])

    return PackedGraphs.built(
        words=values("words", np.int32),
        node_start=starts("node_start"),
        source=values("source", np.int32),
        target=values("target", np.int32),
        weight=values("weight", np.float32),
        edge_start=starts("edge_start"),
        document_start=starts("document_start"),
        count=None if any(part.count is None for part in parts) else values("count", np.int32),
    )


def chunks(starts: Array, size: int) -> Iterator[tuple[int, int]]:
    """Cut runs that begin and end at `starts` into chunks of at most `size`, at least one run each: first, last + 1."""
    first = 0
    while first < len(starts) - 1:
        last = int(np.searchsorted(starts, starts[first] + size, side="right")) - 1
        yield first, (last := max(last, first + 1))
        first = last


def with_edges(graphs: PackedGraphs, kept: Array) -> PackedGraphs:
    """Repeat a corpus for each row of `kept` (versions, n_edges), with all nodes and only the edges kept there."""
    many = take_documents(graphs, np.tile(np.arange(len(graphs)), len(kept)))
    chosen = kept.ravel()
    starts = np.concatenate([[0], np.cumsum(chosen)])[many.edge_start]
    edges = {name: getattr(many, name)[chosen] for name in ("source", "target", "weight")}
    return PackedGraphs.built(**{**vars(many), **edges, "edge_start": starts, "new_words": graphs.new_words})


def take_documents(graphs: PackedGraphs, documents: Array) -> PackedGraphs:
    """Return some documents of packed graphs, in this order."""

    def runs(first: Array, count: Array) -> Array:
        ends = np.cumsum(count)
        return np.repeat(first - (ends - count), count) + np.arange(int(ends[-1]) if len(ends) else 0)

    def starts(count: Array) -> Array:
        return np.concatenate([[0], np.cumsum(count)]).astype(np.int64)

    n_graphs = np.diff(graphs.document_start)[documents]
    chosen = runs(graphs.document_start[documents], n_graphs)
    n_nodes, n_edges = np.diff(graphs.node_start)[chosen], np.diff(graphs.edge_start)[chosen]
    nodes, edges = runs(graphs.node_start[chosen], n_nodes), runs(graphs.edge_start[chosen], n_edges)
    return PackedGraphs.built(
        words=graphs.words[nodes],
        node_start=starts(n_nodes),
        source=graphs.source[edges],
        target=graphs.target[edges],
        weight=graphs.weight[edges],
        edge_start=starts(n_edges),
        document_start=starts(n_graphs),
        count=None if graphs.count is None else graphs.count[nodes],
        new_words=(),
        features=None if graphs.features is None else graphs.features[nodes],
    )
