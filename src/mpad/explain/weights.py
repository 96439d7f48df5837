"""What a method of explanation gives: one number a word, an edge and a sentence of the dissected document."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float64]


@dataclass(frozen=True)
class PartWeights:
    """Weights in the order of the dissected document's parts."""

    words: Weights  # (occurrences,)
    edges: Weights  # (edges,)
    sentences: Weights  # (sentences,)
    note: str = ""
    word_potentials: Weights | None = None  # (occurrences,), what the linear part adds of the words' weights
    edge_potentials: Weights | None = None  # (edges,)
    growth: float | None = None  # how far all words together raise the log-odds, if that is known
