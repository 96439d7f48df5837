"""Accuracy by slices of the documents: by class, length, topic, and the values of further columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.estimator.held_out_scores import Share, wilson
from mpad.evaluate.neighbors import Vectors, name_topics, text_vectors

_FEW = 20  # documents; smaller slices are not judged
_MOST_VALUES = 30  # of a column; with more it is cut into quarters, or left out if it is not numeric


@dataclass(frozen=True)
class Slice:
    """Documents with one value of a column, and their accuracy."""

    column: str
    value: str
    documents: int
    accuracy: Share

    def is_weak(self, overall: float) -> bool:
        """Return whether the accuracy is clearly below that of all documents."""
        return self.documents >= _FEW and self.accuracy.high < overall


def score_slices(right: NDArray[np.bool_], columns: Mapping[str, Sequence[Any]]) -> list[Slice]:
    """Return the slices of all columns, the one with most mistakes above the average first.

    Parameters
    ----------
    right : ndarray of bool
        Which documents are predicted correctly.
    columns : mapping of str to sequence
        A value per document in each column. A numeric column with many values is cut into quarters; any other with
        more than 30 values is left out.

    Returns
    -------
    list of Slice

    """
    slices = []
    for name, values in columns.items():
        groups = np.array(bins(values) or [])
        for value in np.unique(groups).tolist():
            members = right[groups == value]
            slices.append(Slice(name, value, len(members), wilson(int(members.sum()), len(members))))
    overall = float(right.mean()) if len(right) else 0.0
    return sorted(slices, key=lambda one: one.documents * (one.accuracy.value - overall))


def automatic_columns(
    texts: Sequence[str], labels: Sequence[Any], vectors: Vectors | None = None
) -> dict[str, list[Any]]:
    """Return columns that every set of labeled documents has: class, number of words, and topic."""
    topics = name_topics(texts, text_vectors(texts) if vectors is None else vectors)
    return {"class": list(labels), "words": [len(text.split()) for text in texts], "topic": topics}


def bins(values: Sequence[Any]) -> list[str] | None:
    """Return a group for each value: the value itself, or its quarter of a numeric column; None if there are too many.

    A missing value is the group "(none)".
    """
    shown = ["" if value is None else str(value).strip() for value in values]
    if len(set(shown)) <= _MOST_VALUES:
        return [value or "(none)" for value in shown]
    try:
        numbers = np.array([float(value or "nan") for value in shown])
    except ValueError:
        return None
    cuts = np.unique(np.nanpercentile(numbers, [25, 50, 75]))
    edges = [-np.inf, *cuts.tolist(), np.inf]
    names = [_interval(low, high) for low, high in zip(edges, edges[1:], strict=False)]
    return ["(none)" if np.isnan(number) else names[int(np.searchsorted(cuts, number))] for number in numbers.tolist()]


def _interval(low: float, high: float) -> str:
    if low == -np.inf:
        return f"up to {high:g}"
    return f"above {low:g}" if high == np.inf else f"above {low:g} to {high:g}"
