"""What is to be trained, and how."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.models.network import Network
from mpad.training.examples import Examples


@dataclass(frozen=True)
class TrainingConfig:
    """How to train: Adam on cross-entropy, the best epoch kept.

    schedule: "constant", or "halving" the rate every 50 epochs, as the authors' code does.
    by_length: batches of documents of about the same length, for networks that pad.
    patience: epochs without a better validation accuracy before stopping; None: never.
    """

    max_epochs: int = 200
    patience: int | None = 20
    batch_size: int = 128
    learning_rate: float = 0.001
    schedule: Literal["constant", "halving"] = "constant"
    seed: int = 0
    by_length: bool = False

    def __post_init__(self) -> None:
        for name in ("max_epochs", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise InputError(f"{name} must be a whole number, at least 1, not {value!r}")
        if not self.learning_rate > 0:
            raise InputError(f"learning_rate must be above 0, not {self.learning_rate}")
        if self.patience is not None and self.patience < 1:
            raise InputError(f"patience must be at least 1 epoch, or None for no early stopping, not {self.patience}")


@dataclass(frozen=True)
class Task:
    """One model to train. Nothing is ever chosen by the `watched` examples; their accuracy is only reported."""

    network: Network
    examples: Examples
    validation: Examples | None
    config: TrainingConfig
    watched: Examples | None = None


Batches = Sequence[NDArray[np.int64]]  # of one model's epoch: rows of its examples


@dataclass(frozen=True)
class Result:
    """What an epoch came to, of one model."""

    train_loss: float
    loss: float
    accuracy: float
    watched_accuracy: float | None = None


def check_together(tasks: Sequence[Task]) -> None:
    """Models that train together share their batches' size, their epochs and their schedule."""
    if not tasks:
        raise InputError("nothing to train: no tasks were given")
    for name in ("max_epochs", "batch_size", "schedule"):
        values = {getattr(task.config, name) for task in tasks}
        if len(values) > 1:
            found = ", ".join(sorted(map(str, values)))
            raise InputError(f"models that train together need the same {name}; found {found}")
    for name in ("validation", "watched"):
        if len({getattr(task, name) is None for task in tasks}) > 1:
            raise InputError(f"of models that train together, all have {name} examples or none")
