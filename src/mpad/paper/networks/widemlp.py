"""WideMLP: a bag of words through one wide layer (Galke & Scherp, ACL 2022)."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from mpad.dropout import Dropout
from mpad.errors import InputError
from mpad.model import segment_sum
from mpad.network import Network, Output
from mpad.paper.networks.config import NetworkConfig
from mpad.sequence.batch import WordBatch


@dataclass(frozen=True)
class WideMLPConfig(NetworkConfig):
    """The first layer is the table of word rows: as wide as they are, and always learnt."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.learn_vectors:
            raise InputError("'widemlp' learns its rows: give no vectors, and its width as vector_size")


class WideMLP(Network):
    """The mean of the words' rows, which is a wide dense layer over word frequencies.

    z = ReLU(mean_i W[wᵢ] + b)    logits = drop(z) V + c

    words (n,) → z: (documents, vector_width).
    """

    def __init__(self, config: WideMLPConfig) -> None:
        super().__init__(config)
        self.bias = nn.Parameter(torch.zeros(config.vector_width))
        self.dropout = Dropout(config.dropout)
        self.classes = nn.Linear(config.vector_width, config.n_classes)

    def forward(self, batch: WordBatch) -> Output:
        """Words → logits."""
        rows = functional.embedding(batch.words, self.vectors)
        mean = segment_sum(rows, batch.owner, batch.n_documents) / batch.length.clamp(min=1)[:, None]
        z = functional.relu(mean + self.bias)
        return Output(self.classes(self.dropout(z)), z)
