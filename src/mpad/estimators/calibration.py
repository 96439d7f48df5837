"""Whether probabilities mean what they say: calibration error, reliability, and accuracy of the surest answers."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mpad.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 15
_COVERAGES = np.linspace(0.05, 1.0, 20)


@dataclass(frozen=True)
class Calibration:
    """How sure a model was of its answers, and whether they were right."""

    confidence: NDArray[np.float64]  # (documents,) probability of the label that was chosen
    right: NDArray[np.bool_]  # (documents,)

    @property
    def error(self) -> float:
        """Expected calibration error: mean distance of confidence and accuracy over 15 bins of equal width."""
        centres, accuracy, share = self.reliability()
        return float((np.abs(centres - accuracy) * share).sum())

    def reliability(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Mean confidence, accuracy and share of the documents of each bin that has any."""
        number = np.minimum((self.confidence * BINS).astype(int), BINS - 1)
        count = np.bincount(number, minlength=BINS)
        there = count > 0
        sums = (np.bincount(number, values, BINS)[there] for values in (self.confidence, self.right.astype(float)))
        mean, accuracy = (total / count[there] for total in sums)
        return mean, accuracy, count[there] / len(self.right)

    def coverage(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Accuracy of the surest 5 %, 10 % … 100 % of the answers: shares, accuracies."""
        right = self.right[np.argsort(-self.confidence, kind="stable")]
        counts = np.maximum((_COVERAGES * len(right)).round().astype(int), 1)
        return _COVERAGES, np.cumsum(right)[counts - 1] / counts

    def plot(self, path: Path) -> None:
        """Draw both to a file."""
        figure = require("matplotlib.figure", extra="plots").Figure(figsize=(9, 4), layout="constrained")
        axes = figure.subplots(1, 2)
        _draw_reliability(axes[0], self)
        shares, accuracy = self.coverage()
        axes[1].plot(100 * shares, 100 * accuracy, marker="o", markersize=3)
        axes[1].set(xlabel="answered, surest first (%)", ylabel="accuracy (%)", title="accuracy and coverage")
        figure.savefig(path, dpi=150)


def _draw_reliability(axes: "Axes", calibration: Calibration) -> None:
    confidence, accuracy, share = calibration.reliability()
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    axes.scatter(confidence, accuracy, s=10 + 300 * share)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability", ylabel="share that is right", aspect="equal")
    axes.set_title(f"reliability (expected calibration error {calibration.error:.3f})")
