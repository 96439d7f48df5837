"""Sums and softmax per group of consecutive rows, in NumPy."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mpad.graph.packed import PackedGraphs
from mpad.inference.answer import Floats
from mpad.inference.fold import Bias, Ints, Step, relu
from mpad.text.vocabulary import SPARE_ROWS, piece_means

_DENSE = 1 << 18  # entries of a (groups, rows) matrix up to which a product beats `reduceat`


class Groups:
    """Groups of consecutive rows: group g owns rows start[g]:start[g + 1]."""

    def __init__(self, start: NDArray[np.int64]) -> None:
        self.start, self.size = start, start[1:] - start[:-1]
        self.n, self.n_rows = len(self.size), int(start[-1])
        self.owner = np.repeat(np.arange(self.n), self.size)
        self._filled = np.flatnonzero(self.size)
        self._first = start[:-1][self._filled]
        self._members: Floats | None = None
        if self.n * self.n_rows <= _DENSE:
            self._members = np.zeros((self.n, self.n_rows), np.float32)
            self._members[self.owner, np.arange(self.n_rows)] = 1.0

    def sum(self, x: Floats, weight: Floats | None = None) -> Floats:
        """Return Σ weight · x over each group: (rows, width) → (groups, width)."""
        if self._members is not None:
            return np.asarray((self._members if weight is None else self._members * weight) @ x)
        total = np.zeros((self.n, x.shape[1]), np.float32)
        if len(self._filled):
            total[self._filled] = np.add.reduceat(x if weight is None else x * weight[:, None], self._first, axis=0)
        return total

    def softmax(self, score: Floats, small: bool = False) -> Floats:
        """Return exp(score) / Σ exp(score) within each group: (rows,) → (rows,). `small` scores cannot overflow."""
        if not len(score):
            return score
        size = self.size[self._filled]
        if not small:
            score = score - np.repeat(np.maximum.reduceat(score, self._first), size)
        score = np.exp(score)
        score /= np.repeat(np.add.reduceat(score, self._first), size)
        return score


@dataclass(frozen=True)
class Messages:
    """Messages to rows, or with a GRU their parts in the gates and in the candidate.

    With an `index`, row i receives row index[i] of `parts` or, if that is negative, row −1 − index[i] of `rest`.
    """

    parts: tuple[Floats, ...]
    index: Ints | None = None
    rest: tuple[Floats, ...] | None = None

    def rows(self) -> list[Floats]:
        """Return the message to each row."""
        if self.index is None or self.rest is None:
            return list(self.parts)
        others = np.flatnonzero(self.index < 0)
        result = [part.take(self.index, axis=0, mode="wrap") for part in self.parts]
        for part, rest in zip(result, self.rest, strict=True):
            part[others] = rest.take(-1 - self.index[others], axis=0)
        return result


def combine(step: Step, entered: tuple[Floats, ...], index: Ints | None, messages: Messages) -> Floats:
    """Return new states of all rows: (rows, width). With an `index`, row i is row index[i] of `entered`."""
    if step.reset is None:
        return messages.rows()[0]
    _, state, gates = entered
    if index is not None:
        state, gates = state.take(index, axis=0), gates.take(index, axis=0)
    told_gates, c = messages.rows()
    gates += told_gates
    np.tanh(gates, out=gates)
    gates += 1.0  # twice the gates
    width = state.shape[1]
    c += (gates[:, :width] * state) @ step.reset
    np.tanh(c, out=c)
    c -= state
    c *= gates[:, width:]
    c *= 0.5
    c += state
    return c


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


class WordTable:
    """The first step's maps of each word. The last row is the master's; as a predecessor it means no word."""

    def __init__(self, step: Step, vectors: NDArray[np.floating], averaged: bool) -> None:
        self._step, self._vectors = step, vectors
        self._known_messages = averaged and step.reset is not None  # mean over a word and the master
        master = step.enter(np.zeros((1, vectors.shape[1]), np.float32))
        self._master_says = master[0]
        messages = self._message(master[0].copy()) if self._known_messages else ()
        self._entered, self._messages = (
            [np.empty((len(vectors) + 1, part.shape[1]), np.float32) for part in parts] for parts in (master, messages)
        )
        for table, row in zip([*self._entered, *self._messages], [*master, *messages], strict=True):
            table[-1] = row
        self._known = np.zeros(len(vectors) + 1, bool)
        self._known[-1] = True

    def entered(self, index: NDArray[np.integer]) -> tuple[Floats, ...]:
        """Return the output of the step's `enter`, one row per word, after computing the rows of these words."""
        known = self._known.take(index)
        if not known.all():
            self._learn(np.unique(index[~known]))
        return tuple(self._entered)

    def _learn(self, words: NDArray[np.integer]) -> None:
        self.set_rows(words, self._vectors[words].astype(np.float32))

    def set_rows(self, words: NDArray[np.integer], vectors: Floats) -> None:
        """Compute the rows of some words from these vectors."""
        entered = self._step.enter(vectors)
        messages = self._message((entered[0] + self._master_says) * np.float32(0.5)) if self._known_messages else ()
        for table, rows in zip([*self._entered, *self._messages], [*entered, *messages], strict=True):
            table[words] = rows
        self._known[words] = True

    def _message(self, received: Floats) -> tuple[Floats, ...]:
        return self._step.message(relu(self._step.bias.add_to(received)))

    @property
    def tables(self) -> tuple[list[Floats], list[Floats]]:
        """Tables per word: outgoing message, state, gate input; and the incoming message of a successor, if known."""
        return self._entered, self._messages

    def messages(self, index: Ints, neighbours: WordNeighbours) -> Messages | None:
        """Return the messages of the first step; None if they are not in the tables."""
        if not self._known_messages:
            return None
        before = neighbours.words_before(index, nobody=len(self._known) - 1)
        rest = neighbours.rest
        before[rest] = np.arange(-1, -1 - len(rest), -1)
        received = neighbours.aggregate_relu(self._entered[0].take(index, axis=0), self._step.bias, rest)
        return Messages(tuple(self._messages), before, self._step.message(received))


class SpareRows:
    """The spare rows, for words composed of pieces; one corpus at a time uses them."""

    def __init__(self, vectors: NDArray[np.floating]) -> None:
        self._vectors, self._lock = vectors, Lock()

    @contextmanager
    def taken_by(self, graphs: PackedGraphs, table: WordTable) -> Iterator[None]:
        """Assign a table's spare rows to the new words of these graphs while the context lasts."""
        if not graphs.new_words or graphs.features is not None:
            yield
            return
        with self._lock:
            first = len(self._vectors) - SPARE_ROWS
            table.set_rows(np.arange(first, first + len(graphs.new_words)), new_rows(self._vectors, graphs.new_words))
            yield

    def __getstate__(self) -> dict[str, Any]:
        return {"_vectors": self._vectors}  # locks cannot be copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_vectors"])  # type: ignore[misc]


def new_rows(vectors: NDArray[np.floating], new_words: Sequence[Sequence[int]]) -> Floats:
    """Return the vectors of new words, the means of their pieces': (words, width)."""
    return piece_means(lambda ids: vectors[ids], new_words, vectors.shape[1])
