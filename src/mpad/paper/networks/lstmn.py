"""LSTMN: an LSTM that attends to all its earlier states (Cheng et al., EMNLP 2016)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from mpad.paper.networks.config import DocumentNetwork, NetworkConfig
from mpad.sequence.batch import WordBatch


@dataclass(frozen=True)
class LSTMNConfig(NetworkConfig):
    """Units, and how many words of a document are read."""

    hidden: int = 168
    longest: int = 400


class LSTMN(DocumentNetwork):
    """A tape of hidden states and one of memories; each word looks back at both by attention (eqs. 4 to 9).

    a_i = v · tanh(W_h h_i + W_x x_t + W_a h̃_{t−1})    s = softmax(a_1 … a_{t−1})    h̃_t, c̃_t = Σ s_i (h_i, c_i)
    i, f, o = σ(W [h̃_t, x_t])    ĉ = tanh(W [h̃_t, x_t])    c_t = f ⊙ c̃_t + i ⊙ ĉ    h_t = o ⊙ tanh(c_t)

    x: (words, vector_width) → the mean of h over a document: (documents, hidden). Words beyond `longest` are not read.
    """

    def __init__(self, config: LSTMNConfig) -> None:
        super().__init__(config)
        width = config.hidden
        self.key = nn.Linear(width, width, bias=False)
        self.query = nn.Linear(config.vector_width, width)
        self.before = nn.Linear(width, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)
        self.gates_of_word = nn.Linear(config.vector_width, 4 * width)
        self.gates_of_memory = nn.Linear(width, 4 * width, bias=False)
        self.add_classes(width)

    def document_vectors(self, batch: WordBatch) -> Tensor:
        """Words → z."""
        rows = batch.documents()
        words, real = rows.values[:, : self.config.longest], rows.real[:, : self.config.longest]
        x = self.input_dropout(functional.embedding(words, self.vectors))
        states = self._tape(x)
        return (states * real[..., None]).sum(1) / real.sum(1, keepdim=True).clamp(min=1)

    def _tape(self, x: Tensor) -> Tensor:
        """Hidden states of every place: (documents, longest, hidden)."""
        query, gates = self.query(x), self.gates_of_word(x)
        zero = x.new_zeros(x.shape[0], self.config.hidden)
        h_tape: list[Tensor] = []
        c_tape: list[Tensor] = []
        keys: list[Tensor] = []
        seen_h = zero
        for t in range(x.shape[1]):
            seen_c = zero
            if h_tape:
                a = self.score(torch.tanh(torch.stack(keys, 1) + (query[:, t] + self.before(seen_h))[:, None]))
                s = torch.softmax(a, 1)
                seen_h, seen_c = (s * torch.stack(h_tape, 1)).sum(1), (s * torch.stack(c_tape, 1)).sum(1)
            i, f, o, new = (gates[:, t] + self.gates_of_memory(seen_h)).chunk(4, 1)
            c_tape.append(torch.sigmoid(f) * seen_c + torch.sigmoid(i) * torch.tanh(new))
            h_tape.append(torch.sigmoid(o) * torch.tanh(c_tape[-1]))
            keys.append(self.key(h_tape[-1]))
        return torch.stack(h_tape, 1)
