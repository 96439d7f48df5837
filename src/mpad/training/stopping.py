"""Patience, and the best weights so far."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class EarlyStopping:
    """Best epoch of one model: the highest validation accuracy, then the lowest loss.

    Where the last epoch is kept whatever it comes to, each is the best so far.
    """

    def __init__(self, patience: int | None, keep_last: bool = False) -> None:
        self._patience, self._keep_last = patience, keep_last
        self._score: tuple[float, float] | None = None
        self.epoch = 0  # the best; 0: none yet
        self._waited = 0

    def offer(self, epoch: int, accuracy: float, loss: float) -> bool:
        """Look at an epoch's result; say whether it is the best so far."""
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
