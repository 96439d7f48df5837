"""What every network here is: a batch of documents → what it says of them."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from mpad.errors import InputError
from mpad.graph.build import GraphConfig
from mpad.nn.config import MOST_STEPS, WIDEST


@dataclass(frozen=True)
class Output:
    """What a network says of a batch."""

    logits: Tensor  # (n_documents, n_classes)
    vectors: Tensor  # (n_documents, width), the document vectors that the last layer classifies
    word_attention: Tensor | None = None  # (steps, n_words), sums to 1 over the words of a graph, document or sentence
    sentence_attention: Tensor | None = None  # (steps or 1, n_sentences), sums to 1 over the sentences of a document
    member_logits: Tensor | None = None  # (members, n_documents, n_classes), of several networks that answer together
    extra: Tensor | None = None  # a loss of the network's own, added to the documents' while training


@dataclass(frozen=True)
class NetworkConfig:
    """What the shape of every network hangs on; each adds its own."""

    n_classes: int
    vector_width: int
    n_words: int  # rows of the table of word vectors
    dropout: float = 0.5
    learn_vectors: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.dropout < 1.0:
            raise InputError(f"dropout must be at least 0 and below 1, not {self.dropout}")
        self._need_one("vector_width")

    def _need_one(self, *names: str) -> None:
        """Refuse a width, a depth or a number of anything below one, or beyond all sense."""
        for name in names:
            most = MOST_STEPS if name == "layers" else WIDEST
            if not 1 <= getattr(self, name) <= most:
                raise InputError(f"{name} must be at least 1 and at most {most:,}, not {getattr(self, name)}")


class Network(nn.Module):
    """A network over word vectors: a table of rows, learnt or fixed, and a way to read documents by it."""

    stackable = False  # whether several can train as one, their weights with a leading axis
    by_sentence = False  # whether a document is a run of sentences
    reads_trees = False  # whether a document is a parse tree in brackets
    graph: GraphConfig | None = None  # how words become graphs, of networks that read those
    vectors: Tensor  # (n_words, vector_width)

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        table = torch.zeros(config.n_words, config.vector_width)
        if config.learn_vectors:
            self.vectors = nn.Parameter(table)
        else:
            self.register_buffer("vectors", table, persistent=False)

    def set_vectors(self, rows: Tensor) -> None:
        """Start from these rows: copied where they will be learnt, shared where they stay as they are."""
        if isinstance(self.vectors, nn.Parameter):
            with torch.no_grad():
                self.vectors.copy_(rows)
        else:
            self.vectors = rows

    def forward(self, batch: Any) -> Output:
        """Classify a batch: logits ([models,] documents, classes)."""
        raise NotImplementedError
