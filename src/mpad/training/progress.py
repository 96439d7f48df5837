"""What training says of itself: one report an epoch, to any sink."""

import sys
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class EpochReport:
    """How one epoch went. Without validation documents, accuracy and loss are the training ones."""

    epoch: int  # from 1
    max_epochs: int
    train_loss: float
    validation_loss: float
    validation_accuracy: float
    seconds: float
    is_best: bool
    model: int = 0  # of several that train together
    watched_accuracy: float | None = None  # on documents that nothing is chosen by

    def __str__(self) -> str:
        mark = " *" if self.is_best else ""
        return (
            f"epoch {self.epoch:>3}/{self.max_epochs}  loss {self.train_loss:.4f}  "
            f"validation {self.validation_accuracy:.4f}  {self.seconds:.2f} s{mark}"
        )


Sink = Callable[[EpochReport], None]


def silent(report: EpochReport) -> None:
    """Say nothing."""


def to_stderr(report: EpochReport) -> None:
    """A line on standard error."""
    sys.stderr.write(f"{report}\n")
