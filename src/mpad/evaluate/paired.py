"""Compare saved models on the same documents: accuracy, and whether their difference may be chance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import f1_score

from mpad.data.labels import as_lists
from mpad.errors import InputError
from mpad.estimator.held_out_scores import Share, wilson

_DRAWS = 2_000  # of the bootstrap


@dataclass(frozen=True)
class PairedScores:
    """Scores of a model, and its difference from the first model."""

    name: str
    accuracy: Share  # of a multi-label model: documents with all labels right
    macro_f1: float
    difference: Share | None = None  # of the accuracies, with a 95 % interval by the paired bootstrap
    better: int = 0  # documents that only this model has right
    worse: int = 0  # documents that only the first model has right
    p_value: float | None = None  # exact McNemar test


def compare_saved(models: Mapping[str, Any], texts: Sequence[str], labels: Sequence[Any]) -> list[PairedScores]:
    """Compare fitted models on documents that none of them was trained on.

    Parameters
    ----------
    models : mapping of str to estimator
        The others are compared with the first.
    texts, labels : sequence
        Documents and their labels.

    Returns
    -------
    list of PairedScores
        In the order of `models`.

    """
    if not len(texts):
        raise InputError("models are compared on documents; there are none")
    truth = [frozenset(own) for own in as_lists(labels)]
    scores: list[PairedScores] = []
    first: NDArray[np.bool_] | None = None
    for name, model in models.items():
        predicted = [frozenset(own) for own in as_lists(model.labels_.to_names(np.asarray(model.predict(texts))))]
        right = np.array([own == other for own, other in zip(truth, predicted, strict=True)])
        accuracy, macro = wilson(int(right.sum()), len(right)), _macro_f1(truth, predicted)
        if first is None:
            first = right
            scores.append(PairedScores(name, accuracy, macro))
            continue
        better, worse = int((right & ~first).sum()), int((first & ~right).sum())
        p = binomtest(better, better + worse).pvalue if better + worse else 1.0
        scores.append(PairedScores(name, accuracy, macro, _bootstrap(right, first), better, worse, float(p)))
    return scores


def _macro_f1(truth: Sequence[frozenset[str]], predicted: Sequence[frozenset[str]]) -> float:
    """Return the mean F1 of the labels that documents have."""
    names = sorted(frozenset().union(*truth))
    pairs = [(np.array([name in own for own in truth]), np.array([name in own for own in predicted])) for name in names]
    return float(np.mean([f1_score(true, given, zero_division=0.0) for true, given in pairs])) if pairs else 0.0


def _bootstrap(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> Share:
    """Return the difference of two accuracies on the same documents, with its interval."""
    difference = one.astype(float) - other
    generator = np.random.default_rng(0)
    means = [float(difference[generator.integers(len(one), size=len(one))].mean()) for _ in range(_DRAWS)]
    low, high = np.percentile(means, [2.5, 97.5]).tolist()
    return Share(float(difference.mean()), low, high)
