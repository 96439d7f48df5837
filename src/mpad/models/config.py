"""The network's shape, as a value; knows nothing of torch."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mpad.errors import InputError

Variant = Literal["mpad", "sentence-att", "clique", "path"]
VARIANTS: tuple[Variant, ...] = ("mpad", "sentence-att", "clique", "path")


@dataclass(frozen=True)
class MPADConfig:
    """The network's shape.

    steps: rounds of messages, T in the paper, at each level of the hierarchy.
    combine: how a node takes in its message: "gru", or "identity" for the ablation "neighbours only".
    authors: the network of the authors' published code instead of the paper's equations.
    """

    n_classes: int
    vector_width: int
    n_words: int  # rows of the table of word vectors
    variant: Variant = "mpad"
    steps: int = 2
    hidden: int = 64
    master_node: bool = True
    master_skip: bool = True
    renormalise: bool = True
    combine: Literal["gru", "identity"] = "gru"
    dropout: float = 0.5
    authors: bool = False
    learn_vectors: bool = False

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise InputError(f"no variant '{self.variant}' (known: {', '.join(VARIANTS)})")
        if self.combine not in ("gru", "identity"):
            raise InputError(f"combine must be 'gru' or 'identity', not '{self.combine}'")
        for name in ("steps", "hidden"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise InputError(f"{name} must be a whole number, at least 1, not {value!r}")
        for name in ("master_node", "master_skip", "renormalise", "authors", "learn_vectors"):
            object.__setattr__(self, name, bool(getattr(self, name)))  # NumPy's are not Python's, nor C's
        if not 0.0 <= self.dropout < 1.0:
            raise InputError(f"dropout must be at least 0 and below 1, not {self.dropout}")

    @property
    def hierarchical(self) -> bool:
        """Whether a document is a run of sentence graphs."""
        return self.variant != "mpad"
