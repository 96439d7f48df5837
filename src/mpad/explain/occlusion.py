"""Explanation by occlusion: what the answer would be without each part.

Faithful to the answer: a weight is the fall of the label's log-odds when the part is taken out and the document is
read again, so it can be checked by hand with `predict_proba`. A word is taken out of the text (its neighbours close
up), an edge out of the graph, a sentence out of the document. With the unit "word" all occurrences of a word go, and
share its fall evenly; with "occurrence" each goes alone, and of a word that stands there twice neither may weigh much.
It looks at one part at a time: of two different words that say the same, neither may weigh much either. Where
features come from a transformer, the others keep those of the whole text.
"""

import numpy as np
from numpy.typing import NDArray

from mpad.explain.document import TracedDocument
from mpad.explain.units import EDGE, OCCURRENCE, SENTENCE, Parts
from mpad.explain.weights import PartWeights, Weights
from mpad.graph.packed import PackedGraphs

_BUDGET = 1_000_000  # words read again for one explanation, about; longer documents have fewer parts taken out
_CHUNK = 200_000  # words read again at a time


def occlusion_weights(
    document: TracedDocument, column: int, attention: PartWeights, unit: str = OCCURRENCE
) -> PartWeights:
    """Fall of the log-odds of class `column` without each part; attention chooses parts where all are too many."""
    limit = max(10, _BUDGET // max(len(document.ids), 1))
    words, edges, sentences = (Parts(document, one) for one in (unit, EDGE, SENTENCE))
    falls = [_falls(parts, column, parts.weights(attention), limit) for parts in (words, edges, sentences)]
    note = ""
    if len(words) > limit or len(edges) > limit:
        note = (
            f"a long document: only the {limit:,} words, pairs and sentences with most attention "
            "were taken out in turn; the others carry 0"
        )
    return PartWeights(words.shared(falls[0]), falls[1], falls[2], note)


def _falls(parts: Parts, column: int, attention: Weights, limit: int) -> Weights:
    """How far the log-odds fall without each part; 0 of those beyond the limit, which are not looked at."""
    falls = np.zeros(len(parts))
    document = parts.document
    whole = float(_log_odds(document, document.graphs, column)[0])
    taken = np.sort(np.argsort(-attention, kind="stable")[:limit])
    step = max(1, _CHUNK // max(len(document.ids), 1))
    for start in range(0, len(taken), step):
        part = taken[start : start + step]
        kept = np.arange(len(parts)) != part[:, None]
        falls[part] = whole - _log_odds(document, parts.keep(kept), column)
    return falls


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
