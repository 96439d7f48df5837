"""What of a document is weighed, and taken out, as one: a word, an occurrence of it, an edge or a sentence.

A word is all its occurrences together: what the network has one row for. A method that weighs words gives an
occurrence its share: the word's weight over the number of its occurrences (in the hierarchical variants, over those in
the same sentence, whose node it is). So the weights of a word's occurrences add up to the word's, by every method.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.explain.document import TracedDocument
from mpad.explain.weights import PartWeights, Weights
from mpad.graph.packed import PackedGraphs, with_edges

WORD, OCCURRENCE, EDGE, SENTENCE = UNITS = ("word", "occurrence", "edge", "sentence")
WORD_UNITS = (WORD, OCCURRENCE)


def check_unit(unit: str, known: tuple[str, ...] = UNITS) -> None:
    """Refuse a name that is not known."""
    if unit not in known:
        raise InputError(f"no unit '{unit}' here (known: {', '.join(known)})")


@dataclass(frozen=True)
class Parts:
    """A document as n parts of one kind."""

    document: TracedDocument
    unit: str

    def __len__(self) -> int:
        if self.unit == EDGE:
            return len(self.document.graphs.source)
        return int(self.of_occurrence.max()) + 1 if len(self.of_occurrence) else 0

    @cached_property
    def of_occurrence(self) -> NDArray[np.int64]:
        """Part of each occurrence, of parts that hold words: (occurrences,)."""
        if self.unit == SENTENCE:
            return self.document.sentence_of
        ids = self.document.ids
        return np.unique(ids, return_inverse=True)[1] if self.unit == WORD else np.arange(len(ids))

    def keep(self, kept: NDArray[np.bool_]) -> PackedGraphs:
        """The document once for each row of `kept` (versions, n), with only the parts kept there."""
        if self.unit == EDGE:
            return with_edges(self.document.graphs, kept)
        return self.document.build(kept[:, self.of_occurrence])

    def weights(self, weights: PartWeights) -> Weights:
        """The weight of each part: (n,); a word has the sum over its occurrences."""
        if self.unit == EDGE:
            return weights.edges
        if self.unit == SENTENCE:
            return weights.sentences
        return np.bincount(self.of_occurrence, weights.words, minlength=len(self)).astype(np.float64)

    def shared(self, weights: Weights) -> Weights:
        """Weights of words → of occurrences, which have even shares: (occurrences,)."""
        return np.asarray((weights / np.bincount(self.of_occurrence, minlength=len(self)))[self.of_occurrence])
