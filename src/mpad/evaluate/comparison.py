"""Comparison of several models on the same folds of a dataset."""

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t
from sklearn.base import clone
from sklearn.metrics import accuracy_score, f1_score
from sklearn.utils import get_tags

from mpad.data.equal_texts import text_groups
from mpad.data.inputs import as_examples, label_names
from mpad.data.labels import learn_labels
from mpad.errors import InputError
from mpad.estimator.held_out_scores import Share, wilson
from mpad.evaluate.cross_validation import Rows, shuffled_folds
from mpad.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Scores:
    """Scores of a model over the folds."""

    name: str
    accuracy: NDArray[np.float64]  # (folds,) multi-label: share of documents right in all labels
    micro_f1: NDArray[np.float64]  # (folds,) single-label: equal to the accuracy
    macro_f1: NDArray[np.float64]  # (folds,)
    fit_seconds: NDArray[np.float64]  # (folds,)
    documents_a_second: float  # of prediction
    megabytes: float  # of the saved model
    p_value: float | None  # of the difference in micro-F1 from the first model; None for the first
    documents: int = 0  # tested in all folds
    multilabel: bool = False

    @property
    def interval(self) -> Share:
        """Mean with its 95 % interval: Wilson's for accuracy, Student's over the folds for micro-F1."""
        mean, n = float(self.micro_f1.mean()), len(self.micro_f1)
        if not self.multilabel:
            return wilson(mean * self.documents, self.documents)
        half = float(t.ppf(0.975, n - 1) * self.micro_f1.std(ddof=1) / n**0.5)
        return Share(mean, max(0.0, mean - half), min(1.0, mean + half))


def compare(
    models: Mapping[str, Any],
    X: Iterable[str],
    y: Any,
    *,
    folds: int = 5,
    seed: int = 0,
    done: Callable[[str, int], None] = lambda name, fold: None,
) -> list[Scores]:
    """Fit and test every estimator on the same folds.

    Parameters
    ----------
    models : mapping of str to estimator
        Unfitted estimators by name; the others are compared with the first.
    X : iterable of str
        Documents. Equal texts stay in one fold.
    y : array-like
        A label per document; for multi-label data, a list of labels per document or an indicator matrix.
    folds : int, default=5
        Number of folds, stratified for single-label data.
    seed : int, default=0
        Seed of the folds.
    done : callable, optional
        Called with the name of the model and the number of the fold after each fit.

    Returns
    -------
    list of Scores
        One per model, in order.

    Raises
    ------
    InputError
        If there are no models, too few documents for the folds, or single-label models for multi-label data.

    Notes
    -----
    The p-values are those of the paired t-test over folds with Nadeau and Bengio's correction: folds share most of
    their training documents, so the plain test reports differences where there are none.

    """
    names = label_names(y)
    texts, truth = as_examples(X, y)
    if not models:
        raise InputError("expected at least one model to compare")
    labels = learn_labels(truth, names)
    if labels.multilabel:
        check_many_labels(models)
        truth = labels.as_predicted(truth)
    _check_folds(folds, truth)
    splits = shuffled_folds(folds, texts, truth, seed, text_groups(texts))
    scores: list[Scores] = []
    for name, model in models.items():
        rows, megabytes = _score_folds(model, texts, truth, splits, partial(done, name))
        accuracy, micro, macro, fit, predict = np.array(rows).T
        p_value = _p_value(micro - scores[0].micro_f1, len(splits[0][1]) / len(splits[0][0])) if scores else None
        speed, many = len(texts) / float(predict.sum()), labels.multilabel
        scores.append(Scores(name, accuracy, micro, macro, fit, speed, megabytes, p_value, len(texts), many))
    return scores


def _check_folds(folds: int, truth: NDArray[Any]) -> None:
    if truth.ndim == 2:
        limit, unit = len(truth), "documents"
    else:
        limit, unit = int(np.unique(truth, return_counts=True)[1].min()), "documents of the rarest class"
    if not 2 <= folds <= limit:
        raise InputError(f"folds must be from 2 to {limit}, the {unit}, not {folds}")


def check_many_labels(models: Mapping[str, Any]) -> None:
    """Raise InputError if an estimator does not support multi-label data."""
    unable = [name for name, model in models.items() if not get_tags(model).classifier_tags.multi_label]
    if unable:
        raise InputError(f"documents have many labels, but these models give one: {', '.join(unable)}; leave them out")


def _score_folds(
    model: Any, texts: list[str], truth: NDArray[Any], splits: Sequence[tuple[Rows, Rows]], done: Callable[[int], None]
) -> tuple[list[tuple[float, ...]], float]:
    """Return accuracy, micro-F1, macro-F1, seconds to fit and to predict of each fold, and the size in megabytes."""
    rows, megabytes = [], 0.0
    for fold, (training, test) in enumerate(splits):
        start = time.perf_counter()
        fitted = clone(model).fit([texts[row] for row in training], truth[training])
        fit_end = time.perf_counter()
        fitted.predict([texts[test[0]]])  # warm-up: the first prediction prepares caches
        predict_start = time.perf_counter()
        predicted = fitted.predict([texts[row] for row in test])
        end = time.perf_counter()
        f1 = [float(f1_score(truth[test], predicted, average=mean, zero_division=0.0)) for mean in ("micro", "macro")]
        accuracy = float(accuracy_score(truth[test], predicted))
        rows.append((accuracy, *f1, fit_end - start, end - predict_start))
        if fold == 0:
            megabytes = _megabytes(fitted)
        done(fold)
    return rows, megabytes


def _megabytes(fitted: Any) -> float:
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model")
        return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 1e6


def _p_value(difference: NDArray[np.float64], test_to_training: float) -> float:
    """Return the two-sided p-value of the corrected resampled t-test (Nadeau & Bengio, 2003)."""
    n, spread = len(difference), float(difference.var(ddof=1))
    if spread == 0.0:
        return 1.0 if difference.mean() == 0 else 0.0
    statistic = difference.mean() / np.sqrt((1 / n + test_to_training) * spread)
    return float(2 * t.sf(abs(statistic), n - 1))


def plot_scores(scores: Sequence[Scores], path: Path) -> None:
    """Draw accuracies (multi-label: micro-F1) with their intervals, and over the costs of fit and prediction."""
    size = 11, max(3.2, 0.6 + 0.5 * len(scores))
    figure = require("matplotlib.figure", extra="plots").Figure(figsize=size, layout="constrained", dpi=120)
    axes, fit, predict = figure.subplots(1, 3, width_ratios=[1.3, 1, 1])
    measure = "micro-F1" if scores[0].multilabel else "accuracy"
    _draw_cost(fit, scores, [float(one.fit_seconds.mean()) for one in scores], cheap=min)
    fit.set(xlabel="seconds to fit", ylabel=f"{measure}, %")
    _draw_cost(predict, scores, [one.documents_a_second for one in scores], cheap=max)
    predict.set(xlabel="documents predicted per second", ylabel=f"{measure}, %")
    for place, one in enumerate(scores):
        mean, low, high = (100 * value for value in one.interval)
        axes.errorbar(mean, place, xerr=[[mean - low], [high - mean]], fmt="o", color="#0072b2", capsize=4)
        axes.plot(100 * one.micro_f1, [place] * len(one.micro_f1), ".", color="#999999", zorder=0)
    axes.set_yticks(range(len(scores)), [one.name for one in scores])
    axes.invert_yaxis()
    axes.set_xlabel(f"{measure}, % (dots: folds; bars: 95 % intervals of the mean)")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path)


def _draw_cost(axes: "Axes", scores: Sequence[Scores], costs: Sequence[float], cheap: Callable[..., float]) -> None:
    """Plot scores over a cost, with a line through the models that no other beats in both."""
    means = [100 * float(one.micro_f1.mean()) for one in scores]
    points = list(zip(costs, means, strict=True))
    front = [
        (cost, mean)
        for cost, mean in points
        if not any(
            cheap(other, cost) == other and better >= mean and (other, better) != (cost, mean)
            for other, better in points
        )
    ]
    axes.plot(*zip(*sorted(front), strict=True), color="#bbbbbb", zorder=0)
    axes.plot(costs, means, "o", color="#0072b2")
    for one, point in zip(scores, points, strict=True):
        axes.annotate(one.name, point, textcoords="offset points", xytext=(4, 4), fontsize=8)
    axes.set_xscale("log")
    axes.margins(0.2)
    axes.grid(alpha=0.3)
