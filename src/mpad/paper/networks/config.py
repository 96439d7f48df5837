"""Hyper-parameters, dropout and last layer that the baselines' networks share."""

from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor, nn

from mpad.config import MOST_STEPS, WIDEST
from mpad.dropout import Dropout
from mpad.errors import InputError
from mpad.network import Network, Output


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


class DocumentNetwork(Network):
    """A network that makes a vector z of each document: logits = drop(z) W + b.

    z: (documents, width). Subclasses call `add_classes`, most of them last: a seed draws weights layer by layer.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.input_dropout = Dropout(config.dropout, layer=0)

    def add_classes(self, width: int) -> None:
        """Add the last layer, over document vectors of this width."""
        self.dropout = Dropout(self.config.dropout, layer=1)
        self.classes = nn.Linear(width, self.config.n_classes)

    def document_vectors(self, batch: Any) -> Tensor:
        """Batch → z."""
        raise NotImplementedError

    def forward(self, batch: Any) -> Output:
        """Batch → logits."""
        z = self.document_vectors(batch)
        return Output(self.classes(self.dropout(z)), z)
