"""The rows that the first round starts from: word vectors, which are only ever seen through a linear map."""

from typing import NamedTuple

from torch import Tensor

from mpad import ops
from mpad.ops import DropoutState, Words


class WordRows(NamedTuple):
    """H⁰: the vector of each word, dropped out, then a zero row for each master node; never formed as a whole."""

    table: Tensor  # ([models,] n_words, vector_width)
    words: Words
    dropout: DropoutState

    def linear(self, *weights: Tensor) -> list[Tensor]:
        """H⁰ Wᵀ for each weight: ([models,] nodes, out) each."""
        return ops.embedding_linear(self.table, self.words, list(weights), self.dropout)
