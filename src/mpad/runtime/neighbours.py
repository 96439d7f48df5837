"""Who hears whom, in NumPy: the same three kinds of graph as `nn.neighbours`, forwards only."""

from typing import Protocol

import numpy as np

from mpad.graph.packed import PackedGraphs
from mpad.runtime.answer import Floats
from mpad.runtime.segments import Groups

_FEW = 4  # edges; a node with more of them is summed by a product of its own


class Neighbours(Protocol):
    """A graph over rows."""

    def heard(self, x: Floats) -> Floats:
        """D⁻¹ A x: (rows, width) → (rows, width)."""
        ...


class WordGraphs:
    """The graphs of words of a corpus, prepared for sums over incoming edges without a sparse matrix.

    Most words of a document stand after one other word or two. So all first edges are one gather, all second ones
    another; the few nodes that hear from many others are summed one by one, as a vector-matrix product each.
    """

    def __init__(self, graphs: PackedGraphs, master: bool, renormalise: bool) -> None:
        n = len(graphs.words)
        shift = np.repeat(graphs.node_start[:-1], np.diff(graphs.edge_start))
        target = graphs.target + shift
        self._source, self._weight = graphs.source + shift, graphs.weight[:, None]
        self.share: Floats | None = None
        if renormalise:
            degree = np.bincount(target, graphs.weight, n).astype(np.float32)
            share = 1.0 / (degree + 1.0 if master else np.maximum(degree, np.finfo(np.float32).tiny))
            self.share = share.astype(np.float32)[:, None]
        self._count = count = np.bincount(target, minlength=n)
        self._first = first = np.cumsum(count) - count
        # Nearly every first edge has weight 1; where one has not, the rest of it is a later edge.
        self.deaf = np.flatnonzero(count == 0)
        self.first_source = np.arange(n)
        heard = count > 0
        self.first_source[heard] = self._source[first[heard]]
        rest = np.flatnonzero(heard)
        rest = rest[graphs.weight[first[rest]] != 1.0]
        self._ranks = [(rest, self._source[first[rest]], self._weight[first[rest]] - 1.0)]
        for k in range(1, min(int(count.max(initial=0)), _FEW)):
            nodes = np.flatnonzero((count > k) & (count <= _FEW))
            self._ranks.append((nodes, self._source[first[nodes] + k], self._weight[first[nodes] + k]))
        self._many = np.flatnonzero(count > _FEW)

    def add_later_edges(self, x: Floats, to: Floats, begin: int, end: int) -> None:
        """Add what nodes begin … end − 1 hear along all edges but their first."""
        for nodes, source, weight in self._ranks:
            a, b = nodes.searchsorted((begin, end))
            if a == b:
                continue
            told = x.take(source[a:b] - begin, axis=0)
            told *= weight[a:b]
            to[nodes[a:b] - begin] += told
        a, b = self._many.searchsorted((begin, end))
        for node in self._many[a:b].tolist():
            edges = slice(self._first[node] + 1, self._first[node] + self._count[node])
            to[node - begin] += self._weight[edges, 0] @ x.take(self._source[edges] - begin, axis=0)


class WordNeighbours:
    """Some documents' graphs of words, with their master rows last: the mean of what each row hears."""

    def __init__(self, graphs: WordGraphs, begin: int, words: Groups, master: bool) -> None:
        end = begin + words.n_rows
        self._graphs, self._begin, self._end, self._words, self._master = graphs, begin, end, words, master
        self._source = graphs.first_source[begin:end] - begin
        a, b = graphs.deaf.searchsorted((begin, end))
        self._deaf = graphs.deaf[a:b] - begin  # words that no word stands before
        self._share = self._part = None
        if graphs.share is not None:
            self._share = graphs.share[begin:end]
            self._part = (1.0 / np.maximum(words.size, 1)).astype(np.float32)[:, None]

    def heard(self, x: Floats) -> Floats:
        """D⁻¹ A x."""
        n = self._words.n_rows
        y = np.empty(x.shape, np.float32)
        words = x.take(self._source, axis=0, out=y[:n], mode="clip")
        words[self._deaf] = 0.0
        self._graphs.add_later_edges(x, words, self._begin, self._end)
        if self._master:
            words += x[n:].take(self._words.owner, axis=0)
            y[n:] = self._words.sum(x[:n])
        if self._share is not None and self._part is not None:
            words *= self._share
            if self._master:
                y[n:] *= self._part
        return y


class Clique:
    """A complete graph over the sentences of each document."""

    def __init__(self, documents: Groups, renormalise: bool) -> None:
        self._documents = documents
        others = np.maximum(documents.size - 1, 1)[documents.owner, None].astype(np.float32)
        self._divisor = others if renormalise else np.ones_like(others)

    def heard(self, x: Floats) -> Floats:
        """D⁻¹ A x."""
        return np.asarray((self._documents.sum(x)[self._documents.owner] - x) / self._divisor)


class Path:
    """A path through the sentences of each document."""

    def __init__(self, documents: Groups) -> None:
        owner = documents.owner
        self._follows = np.concatenate([np.zeros(min(len(owner), 1), bool), owner[1:] == owner[:-1]])[:, None]

    def heard(self, x: Floats) -> Floats:
        """D⁻¹ A x."""
        return np.asarray(np.roll(x, 1, axis=0) * self._follows)


def sentence_graph(documents: Groups, path: bool, renormalise: bool) -> Neighbours:
    """The graph over the sentences of each document."""
    return Path(documents) if path else Clique(documents, renormalise)
