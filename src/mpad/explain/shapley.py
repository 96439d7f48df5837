"""Explanation by exact Shapley values: every subset of the words of a short text is predicted.

v(S) is the log-odds of the label for the text with the words S only; v(none) is that of the baseline of the gradients,
words without content, because no model is trained on empty texts. The weight of a word is its mean effect on v over all
orders in which words can be added (Shapley, 1953), so the weights add up to v(all) − v(none). The interaction of two
words is the mean effect of one on the effect of the other (Grabisch and Roubens, 1999): "not" and "good" together are
worth less than the sum of both. An edge has the interactions of the words at its ends, at all its places.

No other method is exact; this one takes 2ⁿ predictions of n words.
"""

from itertools import combinations
from math import factorial

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.explain.document import PartWeights, TracedDocument, Weights
from mpad.explain.gradients import growth

MOST_WORDS = 12
_CHUNK = 1_024  # versions of the text predicted at a time


def shapley_weights(document: TracedDocument, column: int) -> PartWeights:
    """Return the exact Shapley values of the words of a text of up to 12 words, and their interactions on edges."""
    n = len(document.ids)
    if n > MOST_WORDS:
        raise InputError(
            f"exact Shapley values are for texts of up to {MOST_WORDS} words, this one has {n:,}: use gradients"
        )
    values = subset_values(document, column)
    words, pairs = shapley_values(values, n), interactions(values, n)
    edges = np.array([sum(pairs[a, b] for a, b in places) for places in document.edge_places], np.float64)
    whole = float(values[-1] - values[0])
    return PartWeights(words, edges, document.sum_sentences(words), growth=whole, pairs=pairs)


def subset_values(document: TracedDocument, column: int) -> Weights:
    """Return the log-odds of every subset of the words: (2ⁿ,); bit i of the place stands for word i."""
    n = len(document.ids)
    kept = (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1
    parts = [kept[start : start + _CHUNK] for start in range(0, 2**n, _CHUNK)]
    values = np.concatenate([document.log_odds(document.build(part), column) for part in parts])
    if n:
        values[0] = values[-1] - growth(document, column)
    return values


def shapley_values(values: Weights, n: int) -> Weights:
    """Return the Shapley value of each player, given the value of every subset: (n,)."""
    subsets, sizes = np.arange(2**n), _sizes(n)
    result = np.zeros(n)
    for i in range(n):
        without = subsets[(subsets >> i) % 2 == 0]
        weights = np.array([factorial(s) * factorial(n - s - 1) / factorial(n) for s in range(n)])[sizes[without]]
        result[i] = weights @ (values[without | 1 << i] - values[without])
    return result


def interactions(values: Weights, n: int) -> NDArray[np.float64]:
    """Return the Shapley interaction of each pair of players: (n, n), symmetric, with zeros on the diagonal."""
    subsets, sizes = np.arange(2**n), _sizes(n)
    result = np.zeros((n, n))
    for i, j in combinations(range(n), 2):
        a, b = 1 << i, 1 << j
        without = subsets[subsets & (a | b) == 0]
        weights = np.array([factorial(s) * factorial(n - s - 2) / factorial(n - 1) for s in range(n - 1)])
        effect = values[without | a | b] - values[without | a] - values[without | b] + values[without]
        result[i, j] = result[j, i] = weights[sizes[without]] @ effect
    return result


def _sizes(n: int) -> NDArray[np.int64]:
    return np.array([subset.bit_count() for subset in range(2**n)], np.int64)
