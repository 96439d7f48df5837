"""Scores of multi-label predictions: per label, micro-averaged and macro-averaged."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_fscore_support
from sklearn.preprocessing import MultiLabelBinarizer

from mpad.data.labels import Labels, as_lists
from mpad.estimator.held_out_scores import Share, wilson
from mpad.extras import require

_MAX_LABELS, _MAX_NAME = 40, 30  # drawn labels, letters per name


class Measured(NamedTuple):
    """Score with the half-width of its 95 % interval."""

    value: float
    margin: float


@dataclass(frozen=True)
class LabelScores:
    """True and predicted labels of documents, and their scores."""

    names: list[str]  # labels of the model, then labels unknown to it, which are always missed
    truth: NDArray[np.bool_]  # (documents, labels)
    predicted: NDArray[np.bool_]  # (documents, labels)
    unknown: tuple[str, ...] = ()  # labels unknown to the model

    @property
    def right(self) -> NDArray[np.int64]:
        """True positives: (labels,)."""
        return np.asarray((self.truth & self.predicted).sum(0))

    @property
    def missed(self) -> NDArray[np.int64]:
        """False negatives: (labels,)."""
        return np.asarray((self.truth & ~self.predicted).sum(0))

    @property
    def wrong(self) -> NDArray[np.int64]:
        """False positives: (labels,)."""
        return np.asarray((~self.truth & self.predicted).sum(0))

    @property
    def precision(self) -> NDArray[np.float64]:
        """Precision per label: (labels,)."""
        return self._average(None)[0]

    @property
    def recall(self) -> NDArray[np.float64]:
        """Recall per label: (labels,)."""
        return self._average(None)[1]

    @property
    def f1(self) -> NDArray[np.float64]:
        """F1 per label: (labels,)."""
        return self._average(None)[2]

    @property
    def has_any(self) -> NDArray[np.bool_]:
        """Labels with at least one document, which the macro-average is over: (labels,)."""
        return np.asarray(self.truth.any(0))

    @property
    def micro(self) -> tuple[float, float, float]:
        """Micro-averaged precision, recall and F1."""
        precision, recall, f1 = map(float, self._average("micro"))
        return precision, recall, f1

    @property
    def macro(self) -> tuple[float, float, float]:
        """Macro-averaged precision, recall and F1, over labels with at least one document."""
        if not self.truth.any():
            return 0.0, 0.0, 0.0
        precision, recall, f1 = (float(score[self.has_any].mean()) for score in self._average(None))
        return precision, recall, f1

    def _average(self, average: str | None) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return precision, recall and F1: an average, or (labels,) each."""
        precision, recall, f1, _ = precision_recall_fscore_support(
            self.truth, self.predicted, average=average, zero_division=0.0
        )
        return np.asarray(precision), np.asarray(recall), np.asarray(f1)

    @property
    def micro_f1(self) -> Measured:
        """Micro-averaged F1 with its interval."""
        return Measured(self.micro[2], self._margin(np.ones(len(self.names), bool), pooled=True))

    @property
    def macro_f1(self) -> Measured:
        """Macro-averaged F1 with its interval."""
        return Measured(self.macro[2], self._margin(self.has_any, pooled=False))

    @property
    def exact(self) -> Share:
        """Share of documents that are right in all labels."""
        return wilson(int((self.truth == self.predicted).all(1).sum()), len(self.truth))

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Return column names and a row per label, then the micro- and macro-averages."""
        columns = ["class", "precision", "recall", "f1", "documents", "right", "missed", "wrongly given"]
        counts = np.stack([self.right + self.missed, self.right, self.missed, self.wrong])
        scores = zip(self.names, self.precision, self.recall, self.f1, counts.T.tolist(), strict=True)
        total = counts.sum(1).tolist()
        averages = [["(micro)", *self.micro, *total], ["(macro)", *self.macro, *total]]
        return columns, [*([name, float(p), float(r), float(f), *own] for name, p, r, f, own in scores), *averages]

    def lines(self) -> list[str]:
        """Describe micro-F1, macro-F1 and the share of documents that are right in all labels."""
        f1 = ("micro-F1", self.micro_f1), ("macro-F1", self.macro_f1)
        lines = [
            f"{name}  {own.value:.4f} ± {own.margin:.4f} (95 %, {len(self.truth):,} documents)" for name, own in f1
        ]
        between = f"95 % interval {self.exact.low:.4f} to {self.exact.high:.4f}"
        lines.append(f"all labels of a document right  {self.exact.value:.4f} ({between})")
        absent = len(self.names) - int(self.has_any.sum())
        return [*lines, f"macro-F1 leaves out {absent} labels that no document here has"] if absent else lines

    def _margin(self, labels: NDArray[np.bool_], pooled: bool) -> float:
        """Return the half-width of the 95 % interval of an F1, a ratio of sums over documents, by the delta method."""
        above = 2.0 * (self.truth & self.predicted)[:, labels]
        below = above + (self.truth ^ self.predicted)[:, labels]
        if pooled:
            above, below = above.sum(1, keepdims=True), below.sum(1, keepdims=True)
        total = np.maximum(below.sum(0), 1)
        if not len(total):
            return 0.0
        influence = ((above - above.sum(0) / total * below) / total).mean(1)  # of each document on the mean F1
        return 1.96 * float(np.sqrt((influence**2).sum()))


def score_labels(labels: Labels, truth: Sequence[Any], indicators: NDArray[Any]) -> LabelScores:
    """Return the scores of predicted indicators, (n, n_classes), against a list of true labels per document."""
    names, lists = [str(name) for name in labels.classes], as_lists(truth)
    unknown = sorted({name for own in lists for name in own} - set(names))
    true = MultiLabelBinarizer(classes=[*names, *unknown]).fit_transform(lists).astype(bool)
    predicted = np.pad(np.asarray(indicators, bool), ((0, 0), (0, len(unknown))))
    return LabelScores([*names, *unknown], true, predicted, tuple(unknown))


def plot_labels(path: Path, scores: LabelScores) -> None:
    """Draw true positives, false negatives and false positives per label with F1, the most frequent label on top."""
    order = np.argsort(scores.right + scores.missed, kind="stable")[-_MAX_LABELS:]
    names = [scores.names[k][:_MAX_NAME] for k in order]
    figure = require("matplotlib.figure", extra="plots").Figure(
        figsize=(7, 1.4 + 0.3 * len(names)), layout="constrained"
    )
    axes, left = figure.subplots(), np.zeros(len(order), np.int64)
    for name, counts, color in (
        ("right", scores.right, "C2"),
        ("missed", scores.missed, "0.7"),
        ("wrongly given", scores.wrong, "C3"),
    ):
        axes.barh(range(len(names)), counts[order], left=left, label=name, color=color)
        left = left + counts[order]
    for place, (end, f1) in enumerate(zip(left.tolist(), scores.f1[order].tolist(), strict=True)):
        axes.annotate(f"F1 {f1:.2f}", (end, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.margins(x=0.15)
    axes.set(xlabel="documents", title=f"micro-F1 {scores.micro_f1.value:.3f}, macro-F1 {scores.macro_f1.value:.3f}")
    axes.legend(fontsize=8)
    figure.savefig(path)
