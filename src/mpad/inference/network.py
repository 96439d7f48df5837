"""MPAD at prediction, in NumPy or compiled code, with folded weights."""

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.config import MPADConfig
from mpad.graph.packed import PackedGraphs
from mpad.inference.answer import Answer, Floats, join
from mpad.inference.fold import RELU, TANH, Affine, FoldedLevel, Ints, Read, Weights, fold_level, linear
from mpad.inference.fused import FusedWords, fused_words
from mpad.inference.layers import (
    Groups,
    Messages,
    Neighbours,
    SpareRows,
    WordGraphs,
    WordNeighbours,
    WordTable,
    combine,
    sentence_graph,
)
from mpad.inference.parallel import side_by_side

_NODES = 500  # words per chunk in NumPy: their states stay in the cache
_GRAPHS = 40  # graphs per chunk: sums over them are products with a (graphs, words) matrix
_PIECE = 2_000  # words per unit of work of a core
_SENTENCES = 8  # factor on the chunk size if NumPy computes only the sentence level


class Network:
    """A trained MPAD. `vectors` (n_words, vector_width) may be float16, or mapped from a file."""

    @np.errstate(invalid="ignore", over="ignore")  # overflow is reported by Labels, from the final logits
    def __init__(self, config: MPADConfig, weights: Weights, vectors: NDArray[np.floating]) -> None:
        self.config, self.weights, self.vectors = config, weights, vectors
        self.by_sentence = config.hierarchical
        self._words = fold_level(weights, "words", config, config.steps, config.master_node)
        self._sentences: FoldedLevel | None = None
        if config.hierarchical:
            steps = 0 if config.variant == "sentence-att" else config.steps
            self._sentences = fold_level(weights, "sentences", config, steps, master=False)
        self._classes = linear(weights, "classes")
        self._spare = SpareRows(vectors)
        self._table = WordTable(self._words.steps[0], vectors, config.master_node and config.renormalise)

    @cached_property
    def _fused(self) -> FusedWords | None:
        return None if self.config.contextual else fused_words(self.config, self._words, self._table)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_fused"}  # C pointers cannot be copied

    def answer(self, graphs: PackedGraphs) -> Answer:
        """Predict every document."""
        # OpenBLAS's product of a few rows of 5 numbers with a vector (AVX-512) also computes in lanes that it never
        # filled: leftovers of an earlier call may raise "invalid", although they do not reach the sums.
        with np.errstate(invalid="ignore", over="ignore"), self._spare.taken_by(graphs, self._table):
            if self._fused is not None:
                return self._answer_fused(self._fused, graphs)
            prepared = WordGraphs(graphs, self.config.master_node, self.config.renormalise)
            return join([self._answer(graphs, prepared, first, last) for first, last in _chunks(graphs, 1)])

    def _answer_fused(self, fused: FusedWords, graphs: PackedGraphs) -> Answer:
        """Predict with one compiled call per part, on all cores."""
        self._table.entered(graphs.words)  # computes new words here, not in several threads
        answers = fused.prepare(graphs)
        starts = graphs.node_start
        pieces = starts.searchsorted(np.arange(_PIECE, int(starts[-1]), _PIECE))
        cuts = sorted({0, *pieces.tolist(), len(starts) - 1})
        side_by_side(lambda part: answers.answer(*part), list(pairwise(cuts)))
        vectors, attention = self._words.dense(answers.read, RELU), answers.attention
        if self._sentences is None:
            return self._classified(graphs, vectors, attention, 0, len(graphs))
        result = []
        for first, last in _chunks(graphs, _SENTENCES):
            start, end = graphs.document_start[first], graphs.document_start[last]
            nodes = slice(graphs.node_start[start], graphs.node_start[end])
            result.append(self._classified(graphs, vectors[start:end], attention[:, nodes], first, last))
        return join(result)

    def _answer(self, graphs: PackedGraphs, prepared: WordGraphs, first: int, last: int) -> Answer:
        """Predict documents first … last − 1."""
        start, end = int(graphs.document_start[first]), int(graphs.document_start[last])
        node_start = graphs.node_start[start : end + 1]
        words = Groups(node_start - node_start[0])
        neighbours = WordNeighbours(prepared, start, end, words)
        if graphs.features is not None:
            rows = graphs.features[node_start[0] : node_start[-1]].astype(np.float32)
            masters = np.zeros((words.n if self.config.master_node else 0, rows.shape[1]), np.float32)
            entered = self._words.steps[0].enter(np.concatenate([rows, masters]))
            vectors, attention = _run(self._words, entered, None, None, neighbours, words)
            return self._classified(graphs, vectors, attention, first, last)
        index = graphs.words[node_start[0] : node_start[-1]].astype(np.int64)
        if self.config.master_node:
            index = np.concatenate([index, np.full(words.n, self.config.n_words)])
        entered = self._table.entered(index)
        messages = self._table.messages(index, neighbours)
        vectors, attention = _run(self._words, entered, index, messages, neighbours, words)
        return self._classified(graphs, vectors, attention, first, last)

    def _classified(self, graphs: PackedGraphs, vectors: Floats, attention: Floats, first: int, last: int) -> Answer:
        """Predict documents first … last − 1, given the vectors of their word graphs."""
        sentence_attention = None
        if self._sentences is not None:
            documents = Groups(graphs.document_start[first : last + 1] - graphs.document_start[first])
            graph = sentence_graph(documents, self.config.variant == "path", self.config.renormalise)
            entered = self._sentences.steps[0].enter(vectors) if self._sentences.steps else (vectors,)
            vectors, sentence_attention = _run(self._sentences, entered, None, None, graph, documents)
        return Answer(self._classes(vectors), vectors, attention, sentence_attention)


def _chunks(graphs: PackedGraphs, times: int) -> Iterator[tuple[int, int]]:
    """Yield runs of documents of a few hundred words, at least one document each."""
    first, n = 0, len(graphs)
    nodes = graphs.node_start[graphs.document_start]
    while first < n or n == first == 0:
        by_nodes = int(np.searchsorted(nodes, nodes[first] + times * _NODES, side="right")) - 1
        limit = graphs.document_start[first] + times * _GRAPHS
        by_graphs = int(np.searchsorted(graphs.document_start, limit, side="right")) - 1
        last = min(max(min(by_nodes, by_graphs), first + 1), n)
        yield first, last
        if n == 0:
            return
        first = last


def _run(
    level: FoldedLevel,
    entered: tuple[Floats, ...],
    index: Ints | None,
    messages: Messages | None,
    neighbours: Neighbours,
    groups: Groups,
) -> tuple[Floats, Floats]:
    """Run a level from the output of the first step's `enter`, and its messages if they are known.

    Return vectors (groups, width) and attention (steps, rows). With an `index`, row i is row index[i] of `entered`.
    """
    read, attention = [], []
    h = entered[-1]
    for t, reader in enumerate(level.reads):
        if level.steps:
            step = level.steps[t]
            if messages is None:
                says = entered[0] if index is None else entered[0].take(index, axis=0)
                messages = Messages(step.message(neighbours.aggregate_relu(says, step.bias)))
            h, index, messages = combine(step, entered, index, messages), None, None
            if t + 1 < len(level.steps):
                entered = level.steps[t + 1].enter(h)
        part, alpha = _readout(reader, h, groups)
        read.append(part)
        attention.append(alpha)
    return level.dense(np.concatenate(read, axis=1), RELU), np.stack(attention)


def _readout(read: Read, h: Floats, groups: Groups) -> tuple[Floats, Floats]:
    """Compute READOUT, equations 7 and 8."""
    words = h[: groups.n_rows]
    if not read.skip and len(h) > groups.n_rows:
        return _readout_with_masters(read, h, groups)
    alpha = groups.softmax(_score(read, words), read.small)
    pooled = _pooled(read.dense, groups.sum(words, alpha))
    return (np.concatenate([pooled, h[groups.n_rows :]], axis=1) if read.skip else pooled), alpha


def _readout_with_masters(read: Read, h: Floats, groups: Groups) -> tuple[Floats, Floats]:
    """Compute READOUT without the master's skip connection: the master is one of its graph's nodes."""
    score = _score(read, h)
    start = np.concatenate([[0], np.cumsum(groups.size + 1)])
    order = np.argsort(np.concatenate([groups.owner, np.arange(groups.n)]), kind="stable")
    both = Groups(start)
    alpha = both.softmax(score[order], read.small)
    back = np.empty_like(alpha)
    back[order] = alpha
    return _pooled(read.dense, both.sum(h[order], alpha)), back[: groups.n_rows]


def _score(read: Read, h: Floats) -> Floats:
    score: Floats = read.align(h, TANH) @ read.context
    return np.tanh(score) if read.bounded else score


def _pooled(dense: Affine | None, pooled: Floats) -> Floats:
    return pooled if dense is None else dense(pooled, RELU)
