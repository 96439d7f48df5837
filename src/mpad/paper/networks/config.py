"""Hyper-parameters shared by the baselines' networks."""

from dataclasses import dataclass

from mpad.config import MOST_STEPS, WIDEST
from mpad.errors import InputError


@dataclass(frozen=True)
class NetworkConfig:
    """Hyper-parameters shared by all networks."""

    n_classes: int
    vector_width: int
    n_words: int  # rows of the table of word vectors
    dropout: float = 0.5
    learn_vectors: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.dropout < 1.0:
            raise InputError(f"dropout must be at least 0 and below 1, not {self.dropout}")
        self._need_one("vector_width")

    def _need_one(self, *names: str) -> None:
        """Raise unless these are between 1 and a sane maximum."""
        for name in names:
            most = MOST_STEPS if name == "layers" else WIDEST
            if not 1 <= getattr(self, name) <= most:
                raise InputError(f"{name} must be at least 1 and at most {most:,}, not {getattr(self, name)}")
