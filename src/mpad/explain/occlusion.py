"""Explanation by occlusion: what the answer would be without each part.

Faithful to the answer: a weight is the fall of the label's log-odds when the part is taken out and the document is
read again, so it can be checked by hand with `predict_proba`. A word is taken out of the text (its neighbours close
up), an edge out of the graph, a sentence out of the document. It looks at one part at a time: of two words that say
the same, neither may weigh much.
"""

import numpy as np
from numpy.typing import NDArray

from mpad.explain.document import TracedDocument
from mpad.explain.weights import PartWeights, Weights
from mpad.graph.packed import PackedGraphs

_BUDGET = 1_000_000  # words read again for one explanation, about; longer documents have fewer parts taken out
_CHUNK = 200_000  # words read again at a time


def occlusion_weights(document: TracedDocument, column: int, attention: PartWeights) -> PartWeights:
    """Fall of the log-odds of class `column` without each part; attention chooses parts where all are too many."""
    n = max(len(document.ids), 1)
    limit = max(10, _BUDGET // n)
    whole = float(_log_odds(document, document.graphs, column)[0])
    words, edges = np.zeros(len(document.ids)), np.zeros(len(document.graphs.source))
    word_parts, edge_parts = _strongest(attention.words, limit), _strongest(attention.edges, limit)
    sentence_parts = _strongest(attention.sentences, limit)
    sentences = np.zeros(document.n_sentences)
    step = max(1, _CHUNK // n)
    for part in _chunks(word_parts, step):
        kept = np.ones((len(part), len(document.ids)), bool)
        kept[np.arange(len(part)), part] = False
        words[part] = whole - _log_odds(document, document.build(kept), column)
    for part in _chunks(sentence_parts, step):
        sentences[part] = whole - _log_odds(document, document.build(document.sentence_of != part[:, None]), column)
    for part in _chunks(edge_parts, step):
        edges[part] = whole - _log_odds(document, _without_edges(document.graphs, part), column)
    note = ""
    if len(words) > limit or len(edges) > limit:
        note = (
            f"a long document: only the {limit:,} words, pairs and sentences with most attention "
            "were taken out in turn; the others carry 0"
        )
    return PartWeights(words, edges, sentences, note)


def _strongest(weights: Weights, limit: int) -> NDArray[np.int64]:
    return np.sort(np.argsort(-weights, kind="stable")[:limit])


def _chunks(parts: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    return [parts[start : start + size] for start in range(0, len(parts), size)]


def _log_odds(document: TracedDocument, graphs: PackedGraphs, column: int) -> Weights:
    return log_odds(document.model.answer(graphs).logits, column, document.model.labels.multilabel)


def log_odds(logits: NDArray[np.float32], column: int, multilabel: bool) -> Weights:
    """Log p / (1 − p) of the class, from the logits: no rounding where p is close to 1."""
    logits = logits.astype(np.float64)
    if multilabel:
        return np.asarray(logits[:, column])
    others = np.delete(logits, column, axis=1)
    highest = others.max(axis=1, keepdims=True)
    return np.asarray(logits[:, column] - highest[:, 0] - np.log(np.exp(others - highest).sum(axis=1)))


def _without_edges(graphs: PackedGraphs, edges: NDArray[np.int64]) -> PackedGraphs:
    """The document once for each of the edges, without that edge."""
    n = len(edges)
    kept = np.arange(len(graphs.source)) != edges[:, None]

    def tiled(starts: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.concatenate([[0], (starts[1:] + starts[-1] * np.arange(n)[:, None]).ravel()])

    counts = np.diff(graphs.edge_start)
    owner = np.repeat(np.arange(graphs.n_graphs), counts)
    per_graph = np.tile(counts, (n, 1))
    per_graph[np.arange(n), owner[edges]] -= 1
    return PackedGraphs(
        words=np.tile(graphs.words, n),
        node_start=tiled(graphs.node_start),
        source=np.broadcast_to(graphs.source, kept.shape)[kept],
        target=np.broadcast_to(graphs.target, kept.shape)[kept],
        weight=np.broadcast_to(graphs.weight, kept.shape)[kept],
        edge_start=np.concatenate([[0], np.cumsum(per_graph.ravel())]),
        document_start=tiled(graphs.document_start),
        count=None if graphs.count is None else np.tile(graphs.count, n),
        new_words=graphs.new_words,
    )
