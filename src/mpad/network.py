"""The base class of MPAD and the baselines' networks: a table of word vectors, and the output of a batch."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Output:
    """The output of a network for a batch."""

    logits: Tensor  # (documents, classes)
    vectors: Tensor  # (documents, width): document vectors, the input of the last layer
    word_attention: Tensor | None = None  # (rounds, words), sums to 1 over the words of a graph
    sentence_attention: Tensor | None = None  # (rounds or 1, sentences), sums to 1 over the sentences of a document
    member_logits: Tensor | None = None  # (members, documents, classes) of an ensemble
    extra: Tensor | None = None  # a loss of the network's own, added to the documents' loss in training


class Network(nn.Module):
    """A network over a table of word vectors, trained or fixed. MPAD and the baselines derive from it."""

    stackable = False  # several can train as one network (mpad.kernels.cuda)
    by_sentence = False  # a document is a sequence of sentences
    reads_trees = False  # a document is a parse tree
    graph: Any = None  # GraphConfig of baselines that read graphs of words
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
        """Start from these word vectors: copied if they are trained, shared if they are fixed."""
        if isinstance(self.vectors, nn.Parameter):
            with torch.no_grad():
                self.vectors.copy_(rows)
        else:
            self.vectors = rows

    def forward(self, batch: Any) -> Output:
        """Classify a batch of documents."""
        raise NotImplementedError
