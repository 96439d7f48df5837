"""LSTM-GRNN: sentences by an LSTM or by convolution, documents by a gated recurrent network (Tang et al., 2015)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from mpad.errors import InputError
from mpad.paper.networks.config import DocumentNetwork, NetworkConfig
from mpad.paper.networks.rows import run_recurrent
from mpad.sequence.batch import PaddedRows, WordBatch


@dataclass(frozen=True)
class LSTMGRNNConfig(NetworkConfig):
    """The sentence encoder ("lstm" or "cnn") and the units of both levels."""

    sentences: Literal["lstm", "cnn"] = "lstm"
    hidden: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sentences not in ("lstm", "cnn"):
            raise InputError(f"sentences must be read by 'lstm' or 'cnn', not '{self.sentences}'")


class LSTMGRNN(DocumentNetwork):
    """Sentence vectors through a gated recurrent network; the mean of its states is the document.

    lstm   s = the last state of LSTM(x)
    cnn    s = mean over widths h = 1, 2, 3 of tanh(mean_j (W_h · x_{j:j+h} + b_h))
    then   h_t = GRU(s_t, h_{t−1})    z = mean_t h_t    logits = drop(z) W + b

    x: (words, vector_width) → s: (sentences, hidden) → z: (documents, hidden).
    """

    by_sentence = True

    def __init__(self, config: LSTMGRNNConfig) -> None:
        super().__init__(config)
        if config.sentences == "lstm":
            self.lstm = nn.LSTM(config.vector_width, config.hidden, batch_first=True)
        else:
            self.convolutions = nn.ModuleList(nn.Conv1d(config.vector_width, config.hidden, h) for h in (1, 2, 3))
        self.documents = nn.GRU(config.hidden, config.hidden, batch_first=True)
        self.add_classes(config.hidden)

    def document_vectors(self, batch: WordBatch) -> Tensor:
        """Words → z."""
        rows = batch.sentences(least=3)
        x = self.input_dropout(functional.embedding(rows.values, self.vectors) * rows.real[..., None])
        by_lstm = self.config.sentences == "lstm"
        sentences = run_recurrent(self.lstm, x, rows.length)[1] if by_lstm else self._cnn(x, rows)
        laid = batch.by_document(sentences)
        states, _ = run_recurrent(self.documents, laid.values, batch.sentence_count)
        return states.sum(1) / batch.sentence_count.clamp(min=1)[:, None]

    def _cnn(self, x: Tensor, rows: PaddedRows) -> Tensor:
        result = []
        for width, layer in enumerate(self.convolutions, start=1):
            c = layer(x.mT)
            windows = (rows.length - width + 1).clamp(min=1)
            inside = torch.arange(c.shape[-1], device=c.device) < windows[:, None]
            result.append(torch.tanh((c * inside[:, None]).sum(-1) / windows[:, None]))
        return torch.stack(result).mean(0)
