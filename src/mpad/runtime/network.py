"""MPAD's answers in NumPy alone: the same network as `models.mpad`, at prediction only, with its weights folded."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mpad.graph.packed import PackedGraphs
from mpad.models.config import MPADConfig
from mpad.runtime.answer import Answer, Floats, join
from mpad.runtime.fold import Affine, FoldedLevel, Read, Step, Weights, fold_level, linear, relu
from mpad.runtime.neighbours import Neighbours, WordGraphs, WordNeighbours, sentence_graph
from mpad.runtime.segments import Groups
from mpad.runtime.table import WordTable

_NODES = 500  # words answered together: their states stay in the cache
_GRAPHS = 40  # likewise graphs: sums over them are products with a (graphs, words) matrix


class Network:
    """Packed graphs → answers. `vectors` (n_words, vector_width) may be of half precision, or mapped from a file."""

    def __init__(self, config: MPADConfig, weights: Weights, vectors: NDArray[np.floating]) -> None:
        self.config = config
        self._words = fold_level(weights, "words", config, config.steps, config.master_node)
        self._sentences: FoldedLevel | None = None
        if config.hierarchical:
            steps = 0 if config.variant == "sentence-att" else config.steps
            self._sentences = fold_level(weights, "sentences", config, steps, master=False)
        self._classes = linear(weights, "classes")
        self._table = WordTable(self._words.steps[0], vectors, config.master_node and config.renormalise)

    def __call__(self, graphs: PackedGraphs) -> Answer:
        """Answer on every document."""
        prepared = WordGraphs(graphs, self.config.master_node, self.config.renormalise)
        return join([self._answer(graphs, prepared, first, last) for first, last in _chunks(graphs)])

    def _answer(self, graphs: PackedGraphs, prepared: WordGraphs, first: int, last: int) -> Answer:
        """Answer on documents first … last − 1."""
        config = self.config
        of_document = graphs.document_start[first : last + 1] - graphs.document_start[first]
        start, end = int(graphs.document_start[first]), int(graphs.document_start[last])
        node_start = graphs.node_start[start : end + 1]
        words = Groups(node_start - node_start[0])
        neighbours = WordNeighbours(prepared, int(node_start[0]), words, config.master_node)
        index = graphs.words[node_start[0] : node_start[-1]]
        if config.master_node:
            index = np.concatenate([index, np.full(words.n, config.n_words, index.dtype)])
        entered = self._table.entered(index)
        told = self._table.told(entered[0], index, neighbours)
        vectors, attention = _run(self._words, entered, neighbours, words, told)
        sentence_attention = None
        if self._sentences is not None:
            documents = Groups(of_document)
            graph = sentence_graph(documents, config.variant == "path", config.renormalise)
            entered = self._sentences.steps[0].enter(vectors) if self._sentences.steps else (vectors,)
            vectors, sentence_attention = _run(self._sentences, entered, graph, documents)
        return Answer(self._classes(vectors), vectors, attention, sentence_attention)


def _chunks(graphs: PackedGraphs) -> Iterator[tuple[int, int]]:
    """Documents in runs of a few hundred words, at least one each."""
    first, n = 0, len(graphs)
    nodes = graphs.node_start[graphs.document_start]
    while first < n or n == first == 0:
        by_nodes = int(np.searchsorted(nodes, nodes[first] + _NODES, side="right")) - 1
        limit = graphs.document_start[first] + _GRAPHS
        by_graphs = int(np.searchsorted(graphs.document_start, limit, side="right")) - 1
        last = min(max(min(by_nodes, by_graphs), first + 1), n)
        yield first, last
        if n == 0:
            return
        first = last


def _run(
    level: FoldedLevel,
    entered: tuple[Floats, ...],
    neighbours: Neighbours,
    groups: Groups,
    told: tuple[Floats, ...] | None = None,
) -> tuple[Floats, Floats]:
    """What the first step's `enter` gave, and what its rows were told, if that is known → vectors, attention.

    (rows, width) → (groups, width), (steps, rows).
    """
    read, attention = [], []
    h = entered[-1]
    for t, reader in enumerate(level.reads):
        if level.steps:
            step = level.steps[t]
            h = _combine(step, entered, step.tell(neighbours.heard(entered[0])) if t or told is None else told)
            if t + 1 < len(level.steps):
                entered = level.steps[t + 1].enter(h)
        part, alpha = _readout(reader, h, groups)
        read.append(part)
        attention.append(alpha)
    return relu(level.dense(np.concatenate(read, axis=1))), np.stack(attention)


def _combine(step: Step, entered: tuple[Floats, ...], told: tuple[Floats, ...]) -> Floats:
    """COMBINE, equations 5 and 6, from what rows know of themselves and what they were told."""
    if step.reset is None:
        return told[0]
    _, state, gates = entered
    gates += told[0]
    np.tanh(gates, out=gates)
    gates += 1.0  # twice the gates
    width = state.shape[1]
    c = told[1]
    c += (gates[:, :width] * state) @ step.reset
    np.tanh(c, out=c)
    c -= state
    c *= gates[:, width:]
    c *= 0.5
    c += state
    return c


def _readout(read: Read, h: Floats, groups: Groups) -> tuple[Floats, Floats]:
    """READOUT, equations 7 and 8."""
    words = h[: groups.n_rows]
    if not read.skip and len(h) > groups.n_rows:
        return _readout_with_masters(read, h, groups)
    alpha = groups.softmax(_score(read, words), read.small)
    pooled = _pooled(read.dense, groups.sum(words, alpha))
    return (np.concatenate([pooled, h[groups.n_rows :]], axis=1) if read.skip else pooled), alpha


def _readout_with_masters(read: Read, h: Floats, groups: Groups) -> tuple[Floats, Floats]:
    """A master node without its skip connection is a node among the others: it joins its graph's words."""
    score = _score(read, h)
    start = np.concatenate([[0], np.cumsum(groups.size + 1)])
    order = np.argsort(np.concatenate([groups.owner, np.arange(groups.n)]), kind="stable")
    both = Groups(start)
    alpha = both.softmax(score[order], read.small)
    back = np.empty_like(alpha)
    back[order] = alpha
    return _pooled(read.dense, both.sum(h[order], alpha)), back[: groups.n_rows]


def _score(read: Read, h: Floats) -> Floats:
    y = read.align(h)
    score: Floats = np.tanh(y, out=y) @ read.context
    return score if read.dense is None else np.tanh(score)


def _pooled(dense: Affine | None, pooled: Floats) -> Floats:
    return pooled if dense is None else relu(dense(pooled))
