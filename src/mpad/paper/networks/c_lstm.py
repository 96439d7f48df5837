"""C-LSTM: convolution, then an LSTM over the windows (Zhou et al., 2015)."""

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional

from mpad.paper.networks.config import DocumentNetwork, NetworkConfig
from mpad.paper.networks.rows import run_recurrent
from mpad.sequence.batch import WordBatch


@dataclass(frozen=True)
class CLSTMConfig(NetworkConfig):
    """Width of the windows, maps, and units of the LSTM."""

    width: int = 3
    maps: int = 150
    hidden: int = 150


class CLSTM(DocumentNetwork):
    """Windows of words, in their order, through an LSTM; its last state is the document.

    c_j = ReLU(W · drop(x)_{j:j+h} + b), j = 1 … L − h + 1    z = LSTM(c_1, c_2, …)    logits = drop(z) W + b

    x: (words, vector_width); c: (windows, maps), without pooling; z: (documents, hidden). A document shorter than a
    window is filled up with zeros to one window.
    """

    def __init__(self, config: CLSTMConfig) -> None:
        super().__init__(config)
        self.windows = nn.Conv1d(config.vector_width, config.maps, config.width)
        self.lstm = nn.LSTM(config.maps, config.hidden, batch_first=True)
        self.add_classes(config.hidden)

    def document_vectors(self, batch: WordBatch) -> Tensor:
        """Words → z."""
        rows = batch.documents(least=self.config.width)
        x = self.input_dropout(functional.embedding(rows.values, self.vectors) * rows.real[..., None])
        c = functional.relu(self.windows(x.mT)).mT
        return run_recurrent(self.lstm, c, rows.length - self.config.width + 1)[1]
