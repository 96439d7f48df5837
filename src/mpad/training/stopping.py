"""Patience, and the best weights so far."""

import torch
from torch import Tensor, nn


class BestWeights:
    """Keeps the weights of the epoch with the highest validation accuracy; among equals, of the lowest loss."""

    def __init__(self, model: nn.Module, patience: int | None) -> None:
        self._model = model
        self._patience = patience
        self._kept: dict[str, Tensor] | None = None
        self._score = (-1.0, 0.0)
        self.epoch = 0  # of the best weights; 0: none yet
        self._waited = 0

    def offer(self, epoch: int, accuracy: float, loss: float) -> bool:
        """Look at an epoch's result; say whether it is the best so far."""
        score = (accuracy, -loss)
        if self._kept is not None and not score > self._score:
            self._waited += accuracy <= self._score[0]
            return False
        # Lower loss at equal accuracy keeps the weights, but only accuracy buys more time.
        self._waited = 0 if accuracy > self._score[0] else self._waited + 1
        self._score, self.epoch = score, epoch
        self._kept = {name: value.detach().clone() for name, value in self._model.state_dict().items()}
        return True

    @property
    def out_of_patience(self) -> bool:
        """Whether accuracy has not risen for `patience` epochs."""
        return self._patience is not None and self._waited >= self._patience

    def restore(self) -> None:
        """Give the model its best weights back."""
        if self._kept is not None:
            with torch.no_grad():
                self._model.load_state_dict(self._kept)
