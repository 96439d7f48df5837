"""How right answers of many labels a document are: each label, all together (micro-F1), and their mean (macro-F1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpad.data.labels import Labels, as_lists
from mpad.estimator.intervals import Share, wilson
from mpad.extras import require

_MOST_DRAWN, _LONGEST_NAME = 40, 30  # labels, letters


class Measured(NamedTuple):
    """A share, and half of its 95 % interval."""

    value: float
    margin: float


@dataclass(frozen=True)
class LabelScores:
    """What documents have, and what they were given."""

    names: list[str]  # the model's labels; then those that the documents alone have, which are always missed
    truth: NDArray[np.bool_]  # (documents, labels)
    given: NDArray[np.bool_]  # (documents, labels)

    @cached_property
    def right(self) -> NDArray[np.int64]:
        """Documents that have a label and were given it: (labels,)."""
        return np.asarray((self.truth & self.given).sum(0))

    @cached_property
    def missed(self) -> NDArray[np.int64]:
        """Documents that have a label and were not given it: (labels,)."""
        return np.asarray((self.truth & ~self.given).sum(0))

    @cached_property
    def wrong(self) -> NDArray[np.int64]:
        """Documents that were given a label and have it not: (labels,)."""
        return np.asarray((~self.truth & self.given).sum(0))

    @property
    def precision(self) -> NDArray[np.float64]:
        """Of documents that were given a label, the share that has it: (labels,)."""
        return _ratio(self.right, self.right + self.wrong)

    @property
    def recall(self) -> NDArray[np.float64]:
        """Of documents that have a label, the share that was given it: (labels,)."""
        return _ratio(self.right, self.right + self.missed)

    @property
    def f1(self) -> NDArray[np.float64]:
        """F1 of each label: (labels,)."""
        return _ratio(2 * self.right, 2 * self.right + self.missed + self.wrong)

    @property
    def has_any(self) -> NDArray[np.bool_]:
        """Labels that some document has, which the macro-average is over: (labels,)."""
        return np.asarray(self.truth.any(0))

    @property
    def micro(self) -> tuple[float, float, float]:
        """Precision, recall and F1 of all labels together."""
        right, missed, wrong = int(self.right.sum()), int(self.missed.sum()), int(self.wrong.sum())
        return (
            right / max(right + wrong, 1),
            right / max(right + missed, 1),
            2 * right / max(2 * right + missed + wrong, 1),
        )

    @property
    def macro(self) -> tuple[float, float, float]:
        """Means of precision, recall and F1 over the labels that some document has."""
        there = self.has_any
        if not there.any():
            return 0.0, 0.0, 0.0
        return float(self.precision[there].mean()), float(self.recall[there].mean()), float(self.f1[there].mean())

    @property
    def micro_f1(self) -> Measured:
        """F1 of all labels together."""
        return Measured(self.micro[2], self._margin(np.ones(len(self.names), bool), together=True))

    @property
    def macro_f1(self) -> Measured:
        """Mean F1 of the labels that some document has."""
        return Measured(self.macro[2], self._margin(self.has_any, together=False))

    @property
    def exact(self) -> Share:
        """Share of documents that are right in all labels."""
        return wilson(int((self.truth == self.given).all(1).sum()), len(self.truth))

    def _margin(self, labels: NDArray[np.bool_], together: bool) -> float:
        """Half of the 95 % interval of an F1, a ratio of sums over documents, by its derivative (the delta method)."""
        above = 2.0 * (self.truth & self.given)[:, labels]
        below = above + (self.truth ^ self.given)[:, labels]
        if together:
            above, below = above.sum(1, keepdims=True), below.sum(1, keepdims=True)
        ratio, total = _ratio(above.sum(0), below.sum(0)), np.maximum(below.sum(0), 1)
        if not len(total):
            return 0.0
        moved = ((above - ratio * below) / total).mean(1)  # what each document moves the mean of the ratios by
        return 1.96 * float(np.sqrt((moved**2).sum()))


def _ratio(above: NDArray[Any], below: NDArray[Any]) -> NDArray[np.float64]:
    """Quotients; 0 where there is nothing to divide by."""
    return np.asarray(above / np.maximum(below, 1), np.float64)


def score_labels(labels: Labels, truth: Sequence[Any], given: NDArray[Any]) -> LabelScores:
    """Compare what documents were given, indicators (n, n_classes), with the labels that they have, a list of each."""
    names, listed = [str(name) for name in labels.classes], as_lists(truth)
    names += sorted({name for own in listed for name in own} - set(names))
    place = {name: column for column, name in enumerate(names)}
    true, said = np.zeros((len(listed), len(names)), bool), np.zeros((len(listed), len(names)), bool)
    for row, own in enumerate(listed):
        true[row, [place[name] for name in own]] = True
    said[:, : len(labels)] = given
    return LabelScores(names, true, said)


def plot_labels(path: Path, scores: LabelScores) -> None:
    """Draw how often each label is right, missed and wrongly given, with its F1; the most frequent on top."""
    order = np.argsort(scores.right + scores.missed, kind="stable")[-_MOST_DRAWN:]
    names = [scores.names[k][:_LONGEST_NAME] for k in order]
    figure = require("matplotlib.figure", extra="plots").Figure(
        figsize=(7, 1.4 + 0.3 * len(names)), layout="constrained"
    )
    axes, left = figure.subplots(), np.zeros(len(order), np.int64)
    for name, counts, colour in (
        ("right", scores.right, "C2"),
        ("missed", scores.missed, "0.7"),
        ("wrongly given", scores.wrong, "C3"),
    ):
        axes.barh(range(len(names)), counts[order], left=left, label=name, color=colour)
        left = left + counts[order]
    for place, (end, f1) in enumerate(zip(left.tolist(), scores.f1[order].tolist(), strict=True)):
        axes.annotate(f"F1 {f1:.2f}", (end, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.margins(x=0.15)
    axes.set(xlabel="documents", title=f"micro-F1 {scores.micro_f1.value:.3f}, macro-F1 {scores.macro_f1.value:.3f}")
    axes.legend(fontsize=8)
    figure.savefig(path)
