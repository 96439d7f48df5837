"""Neighborhood aggregation in NumPy: word graphs, cliques and paths."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mpad.graph.packed import PackedGraphs
from mpad.inference.answer import Floats
from mpad.inference.maps import Bias, Ints, relu
from mpad.inference.segments import Groups

_FEW = 8  # edges; a node with more of them is summed by a product of its own


class Neighbours(Protocol):
    """A graph over rows."""

    def aggregate_relu(self, x: Floats, bias: Bias) -> Floats:
        """Return ReLU(D⁻¹ A x + b): (rows, width) → (rows, width)."""
        ...


class WordGraphs:
    """The word graphs of a corpus, prepared for sums over incoming edges without a sparse matrix.

    Most words of a document have one incoming edge, which is a gather. Nodes with a few edges are gathered, weighted
    and summed by `reduceat`; the few nodes with many edges take one product each.
    """

    def __init__(self, graphs: PackedGraphs, master: bool, renormalise: bool) -> None:
        self.packed, self.master = graphs, master
        n = len(graphs.words)
        shift = np.repeat(graphs.node_start[:-1], graphs.edge_start[1:] - graphs.edge_start[:-1])
        source, target = graphs.source + shift, graphs.target + shift
        count = np.bincount(target, minlength=n)
        degree = np.bincount(target, graphs.weight, n)
        self.share: Floats | None = None
        if renormalise:
            share = 1.0 / (degree + 1.0 if master else np.maximum(degree, np.finfo(np.float32).tiny))
            self.share = share.astype(np.float32)[:, None]
        self.deaf = np.flatnonzero(count == 0)
        self.only_source = np.arange(n)
        self.only_source[target] = source  # for a node with several edges, one of them
        several = ((count > 1) | (degree != count)) & (count <= _FEW)
        self._several = np.flatnonzero(several)
        self._several_edges = _Edges(self._several, several, count, source, target, graphs.weight)
        many = count > _FEW
        self._many = np.flatnonzero(many)
        self.rest = np.flatnonzero(several | many)
        self._many_edges = _Edges(self._many, many, count, source, target, graphs.weight)

    def sum_several(self, x: Floats, to: Floats, begin: int, end: int) -> None:
        """Write the sums of nodes begin … end − 1 with several edges, or one with a weight other than 1."""
        a, b = self._several.searchsorted((begin, end))
        if a < b:
            edges = self._several_edges
            first, last = edges.start[a], edges.start[b]
            messages = x.take(edges.source[first:last] - begin, axis=0)
            messages *= edges.weight[first:last]
            to[self._several[a:b] - begin] = np.add.reduceat(messages, edges.start[a:b] - first, axis=0)
        a, b = self._many.searchsorted((begin, end))
        for number in range(a, b):
            edges = self._many_edges
            part = slice(edges.start[number], edges.start[number + 1])
            to[self._many[number] - begin] = edges.weight[part, 0] @ x.take(edges.source[part] - begin, axis=0)


class _Edges:
    """The incoming edges of some nodes, sorted by node."""

    def __init__(
        self, nodes: Ints, chosen: NDArray[np.bool_], count: Ints, source: Ints, target: Ints, weight: Floats
    ) -> None:
        self.start = np.concatenate([[0], np.cumsum(count.take(nodes))])
        edges = np.flatnonzero(chosen.take(target))
        self.source, self.weight = source.take(edges), weight.take(edges)[:, None]


class WordNeighbours:
    """Mean aggregation over word graphs begin … end − 1, whose master rows come last."""

    def __init__(self, graphs: WordGraphs, begin: int, end: int, words: Groups) -> None:
        packed = graphs.packed
        self._graphs, self._words, self._master = graphs, words, graphs.master
        self._begin, self._end = (int(packed.node_start[graph]) for graph in (begin, end))
        self._source = graphs.only_source[self._begin : self._end] - self._begin
        a, b = graphs.deaf.searchsorted((self._begin, self._end))
        self._deaf = graphs.deaf[a:b] - self._begin  # words without incoming edges

    @property
    def rest(self) -> Ints:
        """Rows with other neighbors than their master and one word: some words, and all masters."""
        a, b = self._graphs.rest.searchsorted((self._begin, self._end))
        n = self._words.n_rows
        return np.concatenate([self._graphs.rest[a:b] - self._begin, np.arange(n, n + self._words.n)])

    def words_before(self, index: Ints, nobody: int) -> Ints:
        """Return the number in `index` of the word before each row, or `nobody`: (rows,)."""
        before = np.full(len(index), nobody)
        before[: self._words.n_rows] = index.take(self._source)
        before[self._deaf] = nobody
        return before

    def aggregate_relu(self, x: Floats, bias: Bias, rows: Ints | None = None) -> Floats:
        """Return ReLU(D⁻¹ A x + b) of all rows or of some."""
        received = self.aggregate(x)
        return relu(bias.add_to(received if rows is None else received.take(rows, axis=0)))

    def aggregate(self, x: Floats) -> Floats:
        """Return D⁻¹ A x."""
        n = self._words.n_rows
        y = np.empty(x.shape, np.float32)
        words = x.take(self._source, axis=0, out=y[:n], mode="clip")
        words[self._deaf] = 0.0
        self._graphs.sum_several(x, words, self._begin, self._end)
        if self._master:
            words += x[n:].take(self._words.owner, axis=0)
            y[n:] = self._words.sum(x[:n])
        if self._graphs.share is not None:
            words *= self._graphs.share[self._begin : self._end]
            if self._master:
                y[n:] *= (1.0 / np.maximum(self._words.size, 1)).astype(np.float32)[:, None]
        return y


class Clique:
    """A complete graph over the sentences of each document."""

    def __init__(self, documents: Groups, renormalise: bool) -> None:
        self._documents = documents
        others = np.maximum(documents.size - 1, 1)[documents.owner, None].astype(np.float32)
        self._divisor = others if renormalise else np.ones_like(others)

    def aggregate_relu(self, x: Floats, bias: Bias) -> Floats:
        """Return ReLU(D⁻¹ A x + b)."""
        return relu(bias.add_to(self.aggregate(x)))

    def aggregate(self, x: Floats) -> Floats:
        """Return D⁻¹ A x."""
        return np.asarray((self._documents.sum(x)[self._documents.owner] - x) / self._divisor)


class Path:
    """A path through the sentences of each document."""

    def __init__(self, documents: Groups) -> None:
        owner = documents.owner
        self._follows = np.concatenate([np.zeros(min(len(owner), 1), bool), owner[1:] == owner[:-1]])[:, None]

    def aggregate_relu(self, x: Floats, bias: Bias) -> Floats:
        """Return ReLU(D⁻¹ A x + b)."""
        return relu(bias.add_to(self.aggregate(x)))

    def aggregate(self, x: Floats) -> Floats:
        """Return D⁻¹ A x."""
        return np.asarray(np.roll(x, 1, axis=0) * self._follows)


def sentence_graph(documents: Groups, path: bool, renormalise: bool) -> Neighbours:
    """Return the graph over the sentences of each document."""
    return Path(documents) if path else Clique(documents, renormalise)
