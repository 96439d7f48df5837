"""Tasks: a network, its examples, and how to train it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpad.config import TrainingConfig
from mpad.errors import InputError
from mpad.network import Corpus, Network


@dataclass(frozen=True)
class Examples:
    """Documents of a corpus with their targets."""

    corpus: Corpus
    documents: Tensor  # (n,) int64, into the corpus
    targets: Tensor  # (n,) int64 class numbers, or (n, n_classes) float indicators
    weights: Tensor  # (n,) float, what each counts in the loss

    def __len__(self) -> int:
        return self.documents.shape[0]


def make_examples(
    corpus: Corpus,
    documents: NDArray[np.int64],
    targets: NDArray[Any],
    weights: NDArray[np.float32] | None = None,
) -> Examples:
    """Choose documents of a corpus; `targets` and `weights` have one row for each document of the corpus."""
    if weights is None:
        weights = np.ones(len(targets), np.float32)

    def tensor(array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(corpus.device)

    return Examples(corpus, tensor(documents), tensor(targets[documents]), tensor(weights[documents]))


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
