"""A trained network → nodes of an ONNX graph: the equations of `runtime.network`, with the same folded weights."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mpad.config import MPADConfig
from mpad.export.onnx_builder import FLOAT, Builder
from mpad.inference.answer import Floats
from mpad.inference.fold import FoldedLevel, Read, Step, Weights, fold_level, linear
from mpad.inference.maps import Affine
from mpad.text.vocabulary import SPARE_ROWS

Aggregate = Callable[[str], str]  # D⁻¹ A x


@dataclass(frozen=True)
class BatchInputs:
    """The graphs of words of some documents: names of the tensors that are handed in, and of what follows from them."""

    words: str  # (nodes,) word id of each node
    owner: str  # (nodes,) graph of each node
    source: str  # (edges,) node
    target: str  # (edges,) node
    weight: str  # (edges,)
    graph_owner: str  # (graphs,) document of each graph, each with at least one, in their order
    n_nodes: str  # (1,)
    n_graphs: str  # (1,)
    n_documents: str  # (1,)


def batch_inputs(g: Builder) -> BatchInputs:
    """Declare the graphs as inputs."""
    words = g.input("words", np.int64, "nodes")
    owner = g.input("owner", np.int64, "nodes")
    source = g.input("source", np.int64, "edges")
    target = g.input("target", np.int64, "edges")
    weight = g.input("weight", np.float32, "edges")
    graph_owner = g.input("graph_owner", np.int64, "graphs")
    before = g("Concat", g.constant([-1], np.int64), graph_owner, axis=0)  # also without any document
    n_documents = g("Add", _rows(g, before, -1), g.constant([1], np.int64))
    counts = g.length(words), g.length(graph_owner), n_documents
    return BatchInputs(words, owner, source, target, weight, graph_owner, *counts)


@dataclass(frozen=True)
class PieceInputs:
    """What new words, whose ids are behind the vocabulary's, are put together from."""

    new: str  # (nodes,) whether a node is a new word
    spare: str  # (nodes,) its number among new words; of other nodes 0
    piece: str  # (pieces,) word id of each piece
    owner: str  # (pieces,) its word's number among new words
    size: str  # (new words,) pieces of each

    def means(self, g: Builder, table: str, width: int) -> str:
        """Mean of the rows of each node's pieces, zeros where it has none: (nodes, width)."""
        rows = g("Cast", g("Gather", table, self.piece), to=FLOAT)
        total = g.sum_rows(rows, self.owner, g.length(self.size), width)
        size = g("Unsqueeze", g("Max", self.size, g.constant(1.0)), g.constant([1], np.int64))
        return g("Gather", g("Div", total, size), self.spare)


def piece_inputs(g: Builder, n_words: int, batch: BatchInputs) -> PieceInputs:
    """Declare the pieces of new words as inputs."""
    limit = g.constant(n_words, np.int64)
    piece, owner = g.input("piece", np.int64, "pieces"), g.input("piece_owner", np.int64, "pieces")
    size = g.sum_rows(g("Expand", g.constant(1.0), g.length(piece)), owner, g.constant([SPARE_ROWS], np.int64))
    spare = g("Max", g("Sub", batch.words, limit), g.constant(0, np.int64))
    return PieceInputs(g("Not", g("Less", batch.words, limit)), spare, piece, owner, size)


def network_logits(g: Builder, config: MPADConfig, weights: Weights, vectors: str, batch: BatchInputs) -> str:
    """One network's logits; `vectors` has the vector of each node."""
    level = fold_level(weights, "words", config, config.steps, config.master_node)
    if config.master_node:
        shape = g("Concat", batch.n_graphs, g.constant([config.vector_width], np.int64), axis=0)
        vectors = g("Concat", vectors, g("Expand", g.constant(0.0), shape), axis=0)
    x = _level(g, level, vectors, _word_means(g, config, batch), batch.owner, batch.n_nodes, batch.n_graphs)
    if config.hierarchical:
        steps = 0 if config.variant == "sentence-att" else config.steps
        level = fold_level(weights, "sentences", config, steps, master=False)
        means = _path(g, batch) if config.variant == "path" else _clique(g, config, batch)
        x = _level(g, level, x, means, batch.graph_owner, batch.n_graphs, batch.n_documents)
    return _affine(g, linear(weights, "classes"), x)


def mean_logits(g: Builder, config: MPADConfig, weights: Weights, vectors: str, batch: BatchInputs) -> str:
    """The logits of a network, or the mean of its members'."""
    if config.members == 1:
        return network_logits(g, config, weights, vectors, batch)
    one, logits = replace(config, members=1), []
    own = [vectors] * config.members
    if config.learn_vectors:
        own = g.several(config.members, "Split", vectors, axis=1, num_outputs=config.members)
    for k in range(config.members):
        at = f"members.{k}."
        part = {name.removeprefix(at): value for name, value in weights.items() if name.startswith(at)}
        logits.append(network_logits(g, one, part, own[k], batch))
    return g("Div", g("Sum", *logits), g.constant(float(config.members)))


def _level(g: Builder, level: FoldedLevel, h: str, means: Aggregate, owner: str, n_rows: str, n: str) -> str:
    """Message passing and readout over one kind of graph: (rows, in) → (n, width)."""
    read = []
    for t, reader in enumerate(level.reads):
        h = _round(g, level.steps[t], h, means) if level.steps else h
        read += _readout(g, reader, h, owner, n_rows, n)
    return g("Relu", _affine(g, level.dense, g("Concat", *read, axis=1)))


def _round(g: Builder, step: Step, h: str, means: Aggregate) -> str:
    """AGGREGATE and COMBINE, equations 4 to 6: (rows, in) → (rows, width)."""
    enter = step.enter
    if enter.before is not None:
        h = _affine(g, enter.before[1], g("Relu", _affine(g, enter.before[0], h)))
    x = g("Relu", g("Add", means(_product(g, enter.sent.w, h)), g.constant(step.bias.row)))
    if step.mlp2 is not None:
        x = _affine(g, step.mlp2, x)
        x = g("Relu", x) if step.mlp_relu else x
    if step.reset is None or step.gates is None or step.candidate is None or enter.gates is None:
        return x
    state = h if enter.state is None else _product(g, enter.state.w, h)
    gates = g("Tanh", g("Add", _affine(g, enter.gates, h), _product(g, step.gates.w, x)))
    reset, update = g.several(2, "Split", g("Add", gates, g.constant(1.0)), axis=1, num_outputs=2)  # twice the gates
    candidate = g("Add", _affine(g, step.candidate, x), _product(g, step.reset, g("Mul", reset, state)))
    moved = g("Mul", update, g("Sub", g("Tanh", candidate), state))
    return g("Add", state, g("Mul", moved, g.constant(0.5)))


def _readout(g: Builder, read: Read, h: str, owner: str, n_rows: str, n: str) -> list[str]:
    """READOUT, equations 7 and 8: (rows, width) → (n, width), and with a skip connection the masters' rows."""
    rows = h
    if read.skip:
        rows = _rows(g, h, 0, n_rows)
    else:  # a master node is then a node among the others; sentences have none
        owner = _rows(g, g("Concat", owner, _numbers(g, n), axis=0), 0, g.length(h))
    score = _product(g, read.context[:, None], g("Tanh", _affine(g, read.align, rows)))
    score = g("Squeeze", g("Tanh", score) if read.bounded else score, g.constant([1], np.int64))
    alpha = g("Unsqueeze", g.softmax(score, owner, n), g.constant([1], np.int64))
    pooled = g.sum_rows(g("Mul", rows, alpha), owner, n, len(read.context))
    if read.dense is not None:
        pooled = g("Relu", _affine(g, read.dense, pooled))
    return [pooled, _rows(g, h, n_rows)] if read.skip else [pooled]


def _word_means(g: Builder, config: MPADConfig, batch: BatchInputs) -> Aggregate:
    """What a word is sent by the words before it and by its master; and a master by its words."""
    column = g.constant([1], np.int64)
    weight = g("Unsqueeze", batch.weight, column)
    degree = size = ""
    if config.renormalise:
        degree = g.sum_rows(batch.weight, batch.target, batch.n_nodes)
        least = g.constant(1.0 if config.master_node else np.finfo(np.float32).tiny)
        degree = g("Unsqueeze", g("Add" if config.master_node else "Max", degree, least), column)
    if config.renormalise and config.master_node:
        one = g.constant(1.0)
        size = g.sum_rows(g("Expand", one, batch.n_nodes), batch.owner, batch.n_graphs)
        size = g("Unsqueeze", g("Max", size, one), column)

    def means(x: str) -> str:
        sent = g("Mul", g("Gather", x, batch.source), weight)
        received = g.sum_rows(sent, batch.target, batch.n_nodes, config.hidden)
        if config.master_node:
            received = g("Add", received, g("Gather", _rows(g, x, batch.n_nodes), batch.owner))
        received = g("Div", received, degree) if degree else received
        if not config.master_node:
            return received
        masters = g.sum_rows(_rows(g, x, 0, batch.n_nodes), batch.owner, batch.n_graphs, config.hidden)
        return g("Concat", received, g("Div", masters, size) if size else masters, axis=0)

    return means


def _clique(g: Builder, config: MPADConfig, batch: BatchInputs) -> Aggregate:
    """Every sentence is sent to by the others of its document."""
    others = ""
    if config.renormalise:
        one = g.constant(1.0)
        ones = g("Expand", one, batch.n_graphs)
        others = g("Max", g("Sub", g.sum_rows(ones, batch.graph_owner, batch.n_documents), one), one)
        others = g("Unsqueeze", g("Gather", others, batch.graph_owner), g.constant([1], np.int64))

    def means(x: str) -> str:
        total = g("Gather", g.sum_rows(x, batch.graph_owner, batch.n_documents, config.hidden), batch.graph_owner)
        rest = g("Sub", total, x)
        return g("Div", rest, others) if others else rest

    return means


def _path(g: Builder, batch: BatchInputs) -> Aggregate:
    """Every sentence is sent to by the one before it."""
    before = g("Concat", g.constant([-1], np.int64), batch.graph_owner, axis=0)
    follows = g("Equal", _rows(g, before, 0, batch.n_graphs), batch.graph_owner)
    follows = g("Unsqueeze", g("Cast", follows, to=FLOAT), g.constant([1], np.int64))
    previous = g("Sub", _numbers(g, batch.n_graphs), g.constant(1, np.int64))
    previous = g("Max", previous, g.constant(0, np.int64))

    return lambda x: g("Mul", g("Gather", x, previous), follows)


def _rows(g: Builder, x: str, first: int | str, end: str | None = None) -> str:
    """Rows first … end − 1 of a tensor, or all from the first on; −1 is the last one."""
    first = first if isinstance(first, str) else g.constant([first], np.int64)
    return g("Slice", x, first, g.constant([np.iinfo(np.int64).max], np.int64) if end is None else end)


def _numbers(g: Builder, n: str) -> str:
    return g("Range", g.constant(0, np.int64), g("Squeeze", n), g.constant(1, np.int64))


def _product(g: Builder, w: Floats, x: str) -> str:
    return g("MatMul", x, g.constant(w))


def _affine(g: Builder, affine: Affine, x: str) -> str:
    return g("Add", _product(g, affine.w, x), g.constant(affine.b))
