"""HN-ATT: bidirectional GRUs and attention, over words and over sentences (Yang et al., NAACL 2016)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from mpad.network import Output
from mpad.paper.networks.config import DocumentNetwork, NetworkConfig
from mpad.paper.networks.rows import masked_softmax, run_recurrent
from mpad.sequence.batch import WordBatch


@dataclass(frozen=True)
class HNATTConfig(NetworkConfig):
    """Units of each GRU in each direction; attention is as wide as both directions."""

    hidden: int = 50


class RowAttention(nn.Module):
    """One vector for each row of states, with its attention (Yang et al. 2016, eqs. 5 to 7).

    u_t = tanh(h_t W + b)    α = softmax_t(u_t · v)    s = Σ α_t h_t

    h: (rows, longest, width), real: (rows, longest) → s: (rows, width), α: (rows, longest). A row without states
    gets zeros.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.align = nn.Linear(width, hidden)
        self.context = nn.Linear(hidden, 1, bias=False)

    def forward(self, h: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """States → s, α."""
        score = self.context(torch.tanh(self.align(h))).squeeze(-1)
        alpha = masked_softmax(score, real, dim=-1)
        return (alpha.unsqueeze(-1) * h).sum(-2), alpha


class HNATT(DocumentNetwork):
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
        self.add_classes(width)

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
