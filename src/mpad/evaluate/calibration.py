"""Calibration of probabilities: calibration error, reliability, and accuracy of the most confident predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve, roc_curve

from mpad.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 15
_MOST_CURVES = 8  # classes in a plot of curves
_COVERAGES = np.linspace(0.05, 1.0, 20)


@dataclass(frozen=True)
class Calibration:
    """Confidence and correctness of predictions."""

    confidence: NDArray[np.float64]  # (documents,) probability of the predicted label
    right: NDArray[np.bool_]  # (documents,)

    @property
    def error(self) -> float:
        """Expected calibration error: mean distance between confidence and accuracy over 15 bins of equal width."""
        centers, accuracy, share = self.reliability()
        return float((np.abs(centers - accuracy) * share).sum())

    def reliability(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean confidence, accuracy and share of documents of each non-empty bin."""
        number = np.minimum((self.confidence * BINS).astype(int), BINS - 1)
        count = np.bincount(number, minlength=BINS)
        filled = count > 0
        sums = (np.bincount(number, values, BINS)[filled] for values in (self.confidence, self.right.astype(float)))
        mean, accuracy = (total / count[filled] for total in sums)
        return mean, accuracy, count[filled] / len(self.right)

    def coverage(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return shares 5 %, 10 % … 100 %, and the accuracy of that share of most confident predictions."""
        right = self.right[np.argsort(-self.confidence, kind="stable")]
        counts = np.maximum((_COVERAGES * len(right)).round().astype(int), 1)
        return _COVERAGES, np.cumsum(right)[counts - 1] / counts


def plot_evaluation(
    path: Path,
    classes: Sequence[str],
    matrix: NDArray[np.int64],
    calibration: Calibration | None,
    ranked: Mapping[str, tuple[NDArray[np.bool_], NDArray[np.float64]]] | None = None,
) -> None:
    """Draw confusions (rows: true, columns: predicted) and, if the model has probabilities, calibration and ranking.

    `ranked` has, for each class, which documents have it and their probability of it.
    """
    panels = 1 if calibration is None else 5 if ranked else 3
    figure = require("matplotlib.figure", extra="plots").Figure(figsize=(4.6 * panels, 4.4), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    _draw_confusions(axes[0], classes, matrix)
    if calibration is not None:
        _draw_reliability(axes[1], calibration)
        shares, accuracy = calibration.coverage()
        axes[2].plot(100 * shares, 100 * accuracy, marker="o", markersize=3)
        axes[2].set(xlabel="coverage, most confident first (%)", ylabel="accuracy (%)", title="accuracy and coverage")
        if ranked:
            _draw_curves(axes[3], axes[4], ranked)
    figure.savefig(path, dpi=150)


def _draw_curves(
    left: "Axes", right: "Axes", ranked: Mapping[str, tuple[NDArray[np.bool_], NDArray[np.float64]]]
) -> None:
    """Draw precision over recall, and the ROC curve, of each class; of many classes, the largest."""
    largest = sorted(ranked, key=lambda name: -int(ranked[name][0].sum()))[:_MOST_CURVES]
    for name in largest:
        own, probability = ranked[name]
        precision, recall, _ = precision_recall_curve(own, probability)
        left.plot(recall, precision, linewidth=1.2, label=name if len(name) <= 16 else name[:15] + "…")
        false, true, _ = roc_curve(own, probability)
        right.plot(false, true, linewidth=1.2)
    right.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    left.set(
        xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02), aspect="equal", title="precision and recall"
    )
    right.set(xlabel="false positives", ylabel="recall", xlim=(0, 1), ylim=(0, 1.02), aspect="equal", title="ROC")
    left.legend(fontsize=7, frameon=False)


def _draw_confusions(axes: "Axes", classes: Sequence[str], matrix: NDArray[np.int64]) -> None:
    shares = matrix / np.maximum(matrix.sum(1, keepdims=True), 1)
    axes.imshow(shares, cmap="Greys", vmin=0, vmax=1)
    size = 8 if len(classes) <= 12 else 5
    names = [name if len(name) <= 16 else name[:15] + "…" for name in classes]
    axes.set_xticks(range(len(classes)), names, rotation=90, fontsize=size)
    axes.set_yticks(range(len(classes)), names, fontsize=size)
    axes.set(xlabel="predicted", ylabel="true", title="confusions")
    for row, column in zip(*np.nonzero(matrix), strict=True):
        color = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column, row, str(matrix[row, column]), ha="center", va="center", fontsize=size, color=color)


def _draw_reliability(axes: "Axes", calibration: Calibration) -> None:
    confidence, accuracy, share = calibration.reliability()
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    axes.scatter(confidence, accuracy, s=10 + 300 * share)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability", ylabel="accuracy", aspect="equal")
    axes.set_title(f"reliability (expected calibration error {calibration.error:.3f})")
