"""How to train, as a value without torch. Its defaults are those of the estimators and of the command line."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mpad.errors import InputError


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
