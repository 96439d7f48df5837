"""Explanation by occlusion: the prediction without each part.

A weight is the fall of the label's log-odds when the part is removed and the document is predicted again, so it can be
checked by hand with `predict_proba`. A word is removed from the text (its neighbors become adjacent), an edge from the
graph, a sentence from the document. With the unit "word" all occurrences of a word are removed together, and each gets
an equal share of the fall. With "occurrence" one is removed at a time, so a repeated word may get small weights. Parts
are removed one at a time, so two synonyms may get small weights too. Transformer features stay those of the whole text.
"""

import numpy as np

from mpad.explain.attention import attention_weights
from mpad.explain.document import EDGE, OCCURRENCE, SENTENCE, Parts, PartWeights, TracedDocument, Weights

_BUDGET = 1_000_000  # words predicted per explanation; in longer documents fewer parts are removed
_CHUNK = 200_000  # words predicted at a time


def occlusion_weights(document: TracedDocument, column: int, unit: str = OCCURRENCE) -> PartWeights:
    """Return the fall of the log-odds of class `column` without each part; attention selects parts of long texts."""
    limit = max(10, _BUDGET // max(len(document.ids), 1))
    attention = attention_weights(document)
    words, edges, sentences = (Parts(document, one) for one in (unit, EDGE, SENTENCE))
    falls = [_measure_falls(parts, column, parts.weights(attention), limit) for parts in (words, edges, sentences)]
    note = ""
    if len(words) > limit or len(edges) > limit:
        note = (
            f"a long document: only the {limit:,} words, pairs and sentences with most attention "
            "were removed in turn; the others have weight 0"
        )
    return PartWeights(words.spread(falls[0]), falls[1], falls[2], note)


def _measure_falls(parts: Parts, column: int, attention: Weights, limit: int) -> Weights:
    """Return the fall of the log-odds without each part; 0 for the parts beyond the limit."""
    falls = np.zeros(len(parts))
    document = parts.document
    whole = document.log_odds(document.graphs, column)
    removed = np.sort(np.argsort(-attention, kind="stable")[:limit])
    step = max(1, _CHUNK // max(len(document.ids), 1))
    for start in range(0, len(removed), step):
        part = removed[start : start + step]
        kept = np.arange(len(parts)) != part[:, None]
        falls[part] = whole - document.log_odds(parts.keep(kept), column)
    return falls
