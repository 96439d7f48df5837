"""Hyper-parameters shared by the baselines' networks."""

from dataclasses import dataclass, fields

from mpad.config import MOST_STEPS, WIDEST
from mpad.errors import InputError


@dataclass(frozen=True)
class NetworkConfig:
    """Hyper-parameters shared by all networks; the ranges of a subclass's whole numbers and rates are checked too."""

    n_classes: int
    vector_width: int
    n_words: int  # rows of the table of word vectors
    dropout: float = 0.5
    learn_vectors: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if field.type is int and name not in ("n_classes", "n_words"):  # those are counted, not chosen
                most = MOST_STEPS if name == "layers" else WIDEST
                if not 1 <= value <= most:
                    raise InputError(f"{name} must be at least 1 and at most {most:,}, not {value}")
            if name.endswith("dropout") and not 0.0 <= value < 1.0:
                raise InputError(f"{name} must be at least 0 and below 1, not {value}")
