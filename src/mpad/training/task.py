"""Tasks: a network, its examples, how to train it; the results of its epochs, and which of them is best."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from mpad.config import TrainingConfig
from mpad.data.equal_texts import one_per_group
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


class Objective:
    """Loss and score of a network's output; these are those of classification."""

    def losses(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy of each document (…, documents): softmax for class numbers, sigmoids for labels."""
        if targets.ndim == logits.ndim:
            return functional.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(-1)
        losses = functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none")
        return losses.view(targets.shape)

    def scores(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return 1 for a correct document, or the share of correct decisions if multi-label: (…, documents)."""
        if targets.ndim == logits.ndim:
            return ((logits > 0) == (targets > 0.5)).float().mean(-1)
        return (logits.argmax(-1) == targets).float()

    def mean(self, logits: Tensor, targets: Tensor, weights: Tensor, total: Tensor | None = None) -> Tensor:
        """Return the weighted mean of the documents' losses: (), or (models,).

        `total` is the sum of all weights, where these documents are a share of a batch that several processes see.
        """
        total = (weights.sum(-1) if total is None else total).clamp(min=torch.finfo(weights.dtype).tiny)
        return (self.losses(logits, targets) * weights).sum(-1) / total


CLASSIFY = Objective()


@dataclass(frozen=True)
class Task:
    """One model to train. Nothing is ever chosen by the `watched` examples; their accuracy is only reported."""

    network: Network
    examples: Examples
    validation: Examples | None
    config: TrainingConfig
    watched: Examples | None = None
    objective: Objective = CLASSIFY


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
    for name in ("max_epochs", "batch_size", "schedule", "weight_decay", "anchor"):
        values = {getattr(task.config, name) for task in tasks}
        if len(values) > 1:
            result = ", ".join(sorted(map(str, values)))
            raise InputError(f"models that train together need the same {name}; found {result}")
    for name in ("validation", "watched"):
        if len({getattr(task, name) is None for task in tasks}) > 1:
            raise InputError(f"of models that train together, all have {name} examples or none")


class EarlyStopping:
    """Best epoch of one model: the highest validation accuracy, then the lowest loss.

    With `keep_last`, every epoch is the best so far.
    """

    def __init__(self, patience: int | None, keep_last: bool = False) -> None:
        self._patience, self._keep_last = patience, keep_last
        self._score: tuple[float, float] | None = None
        self.epoch = 0  # the best; 0: none yet
        self._waited = 0

    def offer(self, epoch: int, accuracy: float, loss: float) -> bool:
        """Consider an epoch's result; return whether it is the best so far."""
        if self.out_of_patience:
            return False
        score = (accuracy, -loss)
        if self._score is not None and not score > self._score and not self._keep_last:
            self._waited += accuracy <= self._score[0]
            return False
        # Lower loss at equal accuracy keeps the weights, but only accuracy buys more time.
        risen = self._score is None or accuracy > self._score[0]
        self._waited = 0 if risen else self._waited + 1
        self._score, self.epoch = score, epoch
        return True

    @property
    def out_of_patience(self) -> bool:
        """True if accuracy has not risen for `patience` epochs."""
        return self._patience is not None and self._waited >= self._patience

    def state(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {"score": self._score, "epoch": self.epoch, "waited": self._waited}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        self._score = None if state["score"] is None else (float(state["score"][0]), float(state["score"][1]))
        self.epoch, self._waited = int(state["epoch"]), int(state["waited"])


class BestWeights:
    """Best weights of a model, or of each of several stacked ones."""

    def __init__(self, network: nn.Module, stacked: bool) -> None:
        self._network, self._stacked = network, stacked
        self._kept: dict[str, Tensor] | None = None

    def keep(self, models: Sequence[int]) -> None:
        """Keep the present weights of these models."""
        if not models:
            return
        state = {name: value.detach() for name, value in self._network.state_dict().items()}
        if self._kept is None or not self._stacked:
            self._kept = {name: value.clone() for name, value in state.items()}
            return
        for name, value in state.items():
            for model in models:
                self._kept[name][model].copy_(value[model])

    def state(self) -> dict[str, Tensor]:
        """Return the best weights so far, if any."""
        return dict(self._kept or {})

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned."""
        own = self._network.state_dict()
        self._kept = {name: value.to(own[name].device) for name, value in state.items()}

    def restore(self) -> None:
        """Copy the best weights into the network."""
        if self._kept is not None:
            with torch.no_grad():
                self._network.load_state_dict(self._kept)


def hold_out(
    targets: NDArray[np.int64] | NDArray[np.float32],
    fraction: float,
    seed: int,
    among: NDArray[np.bool_] | None = None,
    groups: NDArray[Any] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split documents into (training, held out), class by class, so that each class keeps a training document.

    Documents of one group (`text_groups`) stay together. Only documents marked in `among` are held out, by default
    all. The held-out part is empty where every class has one document or one distinct text.
    """
    if not 0.0 <= fraction < 1.0:
        raise InputError(f"validation_fraction must be at least 0 and below 1, not {fraction}")
    generator = np.random.default_rng(seed)
    classes = np.zeros(len(targets), np.int64) if targets.ndim == 2 else targets
    first, place = one_per_group(groups, len(targets))
    free = np.ones(len(first), bool)
    if among is not None:
        free[place[~among]] = False  # a group with a document that must not be held out
    held = np.zeros(len(first), bool)
    for name in np.unique(classes[first]):
        members = generator.permutation(np.flatnonzero(classes[first] == name))
        most = min(round(fraction * len(members)), len(members) - 1)
        held[members[free[members]][:most]] = True
    for name in np.unique(classes):  # a class all of whose documents are copies of held-out ones
        if held[place[classes == name]].all():
            held[place[classes == name]] = False
    return np.flatnonzero(~held[place]), np.flatnonzero(held[place])
