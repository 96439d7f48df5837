"""Potentials → nodes of an ONNX graph: `graph.potentials` says what they are."""

import numpy as np

from mpad.export.onnx_builder import FLOAT, Builder
from mpad.export.onnx_network import BatchInputs, PieceInputs
from mpad.linear.potentials import Potentials, both_classes, pair_keys

_SMALLEST = 1e-9


def linear_logits(
    g: Builder, potentials: Potentials, vectors: str, batch: BatchInputs, pieces: PieceInputs | None
) -> str:
    """What the linear part says of each document; `vectors` has the vector of each node: (documents, classes).

    `pieces` are those of new words, where the vocabulary has any.
    """
    n_words, n_classes = potentials.shape.words, len(potentials.bias)
    pieces = pieces if potentials.has_new_words else None
    count = g.input("count", np.float32, "nodes")
    document = g("Gather", batch.graph_owner, batch.owner)
    row = g("Min", batch.words, g.constant(n_words, np.int64))
    idf = g("Gather", g.constant(np.append(potentials.idf[:n_words], 0)), row)  # 0 of a word without a potential
    known = g("Greater", idf, g.constant(0.0))
    value = g("Mul", _sublinear(g, count), g("Where", known, idf, g.constant(potentials.idf_new)))
    share = _per_document(g, value, g.sum_rows(value, document, batch.n_documents), document)
    if pieces is not None:
        pieced = g("Greater", g("Gather", pieces.size, pieces.spare), g.constant(0.0))
        known = g("Or", known, g("And", pieces.new, pieced))
    value = g("Where", known, value, g.constant(0.0))
    edge_value, edge_row, edge_document = _pairs(g, potentials, batch, document)
    squares = g.sum_rows(g("Mul", value, value), document, batch.n_documents)
    squares = g("Add", squares, g.sum_rows(g("Mul", edge_value, edge_value), edge_document, batch.n_documents))
    length, columns = g("Sqrt", squares), potentials.potential.shape[1]
    nothing = np.zeros((1, columns), potentials.potential.dtype)
    table = g.constant(np.concatenate([potentials.potential[:n_words], nothing]), None)
    rows = g("Cast", g("Gather", table, row), to=FLOAT)
    if pieces is not None:
        new = g("Unsqueeze", pieces.new, g.constant([1], np.int64))
        rows = g("Where", new, pieces.means(g, table, columns), rows)
    scores = g.sum_rows(
        _times(g, rows, _per_document(g, value, length, document)), document, batch.n_documents, columns
    )
    if potentials.shape.pairs:
        rows = g("Cast", g("Gather", g.constant(potentials.potential[n_words:], None), edge_row), to=FLOAT)
        weighed = _times(g, rows, _per_document(g, edge_value, length, edge_document))
        scores = g("Add", scores, g.sum_rows(weighed, edge_document, batch.n_documents, columns))
    # Of two classes one score tells both: the map below takes it to both.
    both = both_classes(np.eye(columns, dtype=np.float32), n_classes) @ potentials.from_scores.T
    logits = g("Add", g("MatMul", scores, g.constant(both)), g.constant(potentials.constant))
    width = potentials.shape.width
    if width:
        first = g.constant([0], np.int64), g.constant([width], np.int64), g.constant([1], np.int64)
        own = g("Mul", g("Slice", vectors, *first), g("Unsqueeze", share, g.constant([1], np.int64)))
        mean = g.sum_rows(own, document, batch.n_documents, width)
        logits = g("Add", logits, g("MatMul", mean, g.constant(potentials.from_mean.T)))
    return logits


def _pairs(g: Builder, potentials: Potentials, batch: BatchInputs, document: str) -> tuple[str, str, str]:
    """Value of each edge, 0 where its pair of words has no potential; row of its pair; its document. (edges,) each."""
    n_words, n_pairs = potentials.shape.words, potentials.shape.pairs
    edge_document = g("Gather", document, batch.target)
    if not n_pairs:
        return g("Mul", batch.weight, g.constant(0.0)), edge_document, edge_document
    first, second = (g("Gather", batch.words, end) for end in (batch.source, batch.target))
    limit = g.constant(n_words, np.int64)
    key = g("Add", g("Mul", first, limit), second)
    # ONNX has no search: halving steps through the keys, which are padded to a power of two less one.
    keys = np.full(1 << n_pairs.bit_length(), np.iinfo(np.int64).max)
    keys[:n_pairs] = pair_keys(potentials.pairs[:, 0], potentials.pairs[:, 1], n_words)
    sorted_keys = g.constant(keys, np.int64)
    row = g("Mul", key, g.constant(0, np.int64))
    for bit in reversed(range(n_pairs.bit_length())):
        last = g("Gather", sorted_keys, g("Add", row, g.constant((1 << bit) - 1, np.int64)))
        further = g("Add", row, g.constant(1 << bit, np.int64))
        row = g("Where", g("Less", last, key), further, row)
    there = g("Equal", g("Gather", sorted_keys, row), key)
    there = g("And", there, g("And", g("Less", first, limit), g("Less", second, limit)))
    row = g("Min", row, g.constant(n_pairs - 1, np.int64))
    idf = g("Gather", g.constant(potentials.idf[n_words:]), row)
    value = g("Where", there, g("Mul", _sublinear(g, batch.weight), idf), g.constant(0.0))
    return value, row, edge_document


def _sublinear(g: Builder, count: str) -> str:
    """1 + log(count); a weight below 1 is itself."""
    one = g.constant(1.0)
    return g("Where", g("Less", count, one), count, g("Add", one, g("Log", g("Max", count, one))))


def _per_document(g: Builder, value: str, divisor: str, document: str) -> str:
    return g("Div", value, g("Gather", g("Max", divisor, g.constant(_SMALLEST)), document))


def _times(g: Builder, rows: str, value: str) -> str:
    return g("Mul", rows, g("Unsqueeze", value, g.constant([1], np.int64)))
