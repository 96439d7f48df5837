"""DAN: the deep averaging network (Iyyer et al., ACL 2015)."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from mpad.dropout import Dropout
from mpad.model import segment_sum
from mpad.network import Network, Output
from mpad.paper.networks.config import NetworkConfig
from mpad.sequence.batch import WordBatch


@dataclass(frozen=True)
class DANConfig(NetworkConfig):
    """Layers after the mean, their width, and the share of words that are dropped while training."""

    layers: int = 3
    hidden: int = 300
    word_dropout: float = 0.3


class DAN(Network):
    """The mean of the word vectors, through dense layers.

    z⁰ = Σ rᵢ vᵢ / Σ rᵢ with rᵢ ~ Bernoulli(1 − word_dropout)    zᵏ = ReLU(zᵏ⁻¹ W + b)    logits = drop(zᴸ) W + b

    v: (words, vector_width) → z: (documents, hidden). A document without words has a mean of zero.
    """

    def __init__(self, config: DANConfig) -> None:
        super().__init__(config)
        self.word_dropout = Dropout(config.word_dropout, layer=0)
        widths = [config.vector_width, *[config.hidden] * config.layers]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths[:-1], widths[1:], strict=True))
        self.dropout = Dropout(config.dropout, layer=1)
        self.classes = nn.Linear(config.hidden, config.n_classes)

    def forward(self, batch: WordBatch) -> Output:
        """Words → logits."""
        rows = self.vectors.index_select(0, batch.words)
        kept = (self.word_dropout(rows.new_ones(rows.shape[0], 1)) > 0).to(rows.dtype)
        both = segment_sum(torch.cat([rows * kept, kept], dim=1), batch.owner, batch.n_documents)
        z = both[:, :-1] / both[:, -1:].clamp(min=1)
        for layer in self.layers:
            z = functional.relu(layer(z))
        return Output(self.classes(self.dropout(z)), z)
