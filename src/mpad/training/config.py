"""Training settings, without torch. The defaults are those of the estimators and of the command line."""

from dataclasses import dataclass
from math import cos, pi
from typing import Literal

import numpy as np

from mpad.errors import InputError


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of a training: Adam on cross-entropy, the best epoch kept.

    schedule: of the learning rate: "constant"; "halving" it every 50 epochs, as the authors' code does; or "cosine",
        down to nothing at `max_epochs`, after a first epoch at half the rate.
    weight_decay: of the weights of linear maps, as in AdamW.
    keep: which epoch's weights are kept, the "best" on validation documents or the "last".
    by_length: batches of documents of about the same length, for networks that pad.
    patience: epochs without a better validation accuracy before stopping; None: never.
    """

    max_epochs: int = 200
    patience: int | None = 20
    batch_size: int = 128
    learning_rate: float = 0.001
    schedule: Literal["constant", "halving", "cosine"] = "constant"
    seed: int = 0
    by_length: bool = False
    weight_decay: float = 0.0
    keep: Literal["best", "last"] = "best"

    def __post_init__(self) -> None:
        for name in ("max_epochs", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise InputError(f"{name} must be a whole number, at least 1, not {value!r}")
        if not self.learning_rate > 0:
            raise InputError(f"learning_rate must be above 0, not {self.learning_rate}")
        if self.patience is not None and self.patience < 1:
            raise InputError(f"patience must be at least 1 epoch, or None for no early stopping, not {self.patience}")

    def rate_factor(self, epoch: int) -> float:
        """Return the factor of the learning rate in an epoch, counted from 1."""
        if self.schedule == "halving":
            return 0.5 ** ((epoch - 1) // 50)
        if self.schedule == "cosine":
            return 0.5 if epoch == 1 else 0.5 + 0.5 * cos(pi * (epoch - 1) / self.max_epochs)
        return 1.0
