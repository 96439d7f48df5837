"""CNN: convolution over words, maximum over time (Kim, EMNLP 2014)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from mpad.dropout import Dropout
from mpad.errors import InputError
from mpad.network import Network, Output
from mpad.paper.networks.config import NetworkConfig
from mpad.sequence.batch import WordBatch


@dataclass(frozen=True)
class CNNConfig(NetworkConfig):
    """Widths of the windows, maps of each, channels, and the most that a class's weights may measure.

    channels: "one", the rows as they are (CNN-static, or CNN-non-static where they are learnt); "two", learnt rows
    beside their first values, both through the same maps (CNN-multichannel).
    """

    widths: Sequence[int] = (3, 4, 5)
    maps: int = 100
    channels: Literal["one", "two"] = "one"
    max_norm: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "widths", tuple(self.widths))
        if not self.max_norm > 0:
            raise InputError(f"max_norm must be above 0, not {self.max_norm}")
        if not self.widths or min(self.widths) < 1 or max(self.widths) > 1_000:
            raise InputError(f"widths must be from 1 to 1,000, not {self.widths}")
        if self.channels not in ("one", "two"):
            raise InputError(f"channels must be 'one' or 'two', not '{self.channels}'")
        if self.channels == "two" and not self.learn_vectors:
            raise InputError("two channels need learn_vectors=True: one of them is learnt, the other stays")


class CNN(Network):
    """Windows of words → maps → their maximum over the document.

    c_j = ReLU(W · x_{j:j+h} + b)    z = max_j c_j, for each map of each width h    logits = drop(z) Ŵ + b

    x: (words, vector_width), zero before the first word and behind the last; z: (documents, widths · maps). Ŵ are
    the weights with each class's row cut down to the norm `max_norm`.
    """

    first_vectors: Tensor  # (n_words, vector_width), of the second channel

    def __init__(self, config: CNNConfig) -> None:
        super().__init__(config)
        if config.channels == "two":
            self.register_buffer("first_vectors", torch.zeros(config.n_words, config.vector_width))
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.vector_width, config.maps, width, padding=width - 1) for width in config.widths
        )
        self.dropout = Dropout(config.dropout)
        self.classes = nn.Linear(config.maps * len(config.widths), config.n_classes)

    def set_vectors(self, rows: Tensor) -> None:
        """Start both channels from these rows."""
        super().set_vectors(rows)
        if self.config.channels == "two":
            self.first_vectors.copy_(rows)

    def forward(self, batch: WordBatch) -> Output:
        """Words → logits."""
        rows = batch.documents()
        tables = [self.vectors, self.first_vectors] if self.config.channels == "two" else [self.vectors]
        x = [(functional.embedding(rows.values, table) * rows.real[..., None]).mT for table in tables]
        z = torch.cat([self._pool(layer, x, rows.length) for layer in self.convolutions], dim=1)
        weight = self.classes.weight.renorm(2, 0, self.config.max_norm)
        return Output(functional.linear(self.dropout(z), weight, self.classes.bias), z)

    def _pool(self, layer: nn.Module, channels: list[Tensor], length: Tensor) -> Tensor:
        """One width's maps, and their maximum over the places that touch a word: (documents, maps)."""
        convolution: nn.Conv1d = layer  # type: ignore[assignment]
        bias = convolution.bias
        c = sum(convolution(x) for x in channels)
        assert isinstance(c, Tensor) and bias is not None
        if len(channels) > 1:
            c = c - (len(channels) - 1) * bias[:, None]  # added once a channel, meant once
        reach = length + convolution.kernel_size[0] - 1
        outside = torch.arange(c.shape[-1], device=c.device) >= reach.clamp(min=1)[:, None]
        return functional.relu(c.masked_fill(outside[:, None], -torch.inf).amax(-1))
