"""Tasks: a network, its examples, and how to train it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.network import Network
from mpad.training.config import TrainingConfig
from mpad.training.examples import Examples


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
    """Result of an epoch for one model."""

    train_loss: float
    loss: float
    accuracy: float
    watched_accuracy: float | None = None


def check_together(tasks: Sequence[Task]) -> None:
    """Raise if models that train together differ in batch size, epochs or schedule."""
    if not tasks:
        raise InputError("nothing to train: no tasks were given")
    for name in ("max_epochs", "batch_size", "schedule", "weight_decay"):
        values = {getattr(task.config, name) for task in tasks}
        if len(values) > 1:
            result = ", ".join(sorted(map(str, values)))
            raise InputError(f"models that train together need the same {name}; found {result}")
    for name in ("validation", "watched"):
        if len({getattr(task, name) is None for task in tasks}) > 1:
            raise InputError(f"of models that train together, all have {name} examples or none")
