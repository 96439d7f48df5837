"""HN-ATT: bidirectional GRUs and attention, over words and over sentences (Yang et al., NAACL 2016)."""

from dataclasses import dataclass

from torch import nn
from torch.nn import functional

from mpad.dropout import Dropout
from mpad.network import Network, Output
from mpad.paper.networks.config import NetworkConfig
from mpad.paper.networks.pooling import RowAttention
from mpad.paper.networks.recurrent import run_recurrent
from mpad.sequence.batch import WordBatch


@dataclass(frozen=True)
class HNATTConfig(NetworkConfig):
    """Units of each GRU in each direction; attention is as wide as both directions."""

    hidden: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_one("hidden")


class HNATT(Network):
    """Words of a sentence → sentence vectors → document vector, the same encoder at both levels.

    h_t = [GRU→(x)_t ; GRU←(x)_t]    α = softmax(tanh(h W + b) · v)    s = Σ α_t h_t

    Words: x (words, vector_width) → s (sentences, 2 · hidden); then sentences: x = s → documents.
    """

    by_sentence = True

    def __init__(self, config: HNATTConfig) -> None:
        super().__init__(config)
        width = 2 * config.hidden
        self.words = nn.GRU(config.vector_width, config.hidden, batch_first=True, bidirectional=True)
        self.word_attention = RowAttention(width, width)
        self.sentences = nn.GRU(width, config.hidden, batch_first=True, bidirectional=True)
        self.sentence_attention = RowAttention(width, width)
        self.input_dropout = Dropout(config.dropout, layer=0)
        self.dropout = Dropout(config.dropout, layer=1)
        self.classes = nn.Linear(width, config.n_classes)

    def forward(self, batch: WordBatch) -> Output:
        """Words → logits, with the attention on words and on sentences."""
        rows = batch.sentences()
        x = self.input_dropout(functional.embedding(rows.values, self.vectors))
        states, _ = run_recurrent(self.words, x, rows.length)
        sentences, alpha = self.word_attention(states, rows.real)
        laid = batch.by_document(sentences)
        states, _ = run_recurrent(self.sentences, laid.values, batch.sentence_count)
        documents, beta = self.sentence_attention(states, laid.real)
        logits = self.classes(self.dropout(documents))
        if batch.shape is not None:  # how many words there are is not known to the host
            return Output(logits, documents)
        return Output(logits, documents, alpha[rows.real][None], beta[laid.real][None])
