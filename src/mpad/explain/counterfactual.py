"""The smallest change that changes the decision: the fewest words whose removal gives another label."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.explain.document import TracedDocument, trace_document
from mpad.inference.pipeline import Pipeline

_MOST_REMOVED = 5
# Words among which sets of 1, 2, … words are searched: those whose removal alone lowers the label most.
_CANDIDATES = {1: 10_000, 2: 60, 3: 24, 4: 16, 5: 13}
_CHUNK = 50_000  # words predicted at a time


@dataclass(frozen=True)
class Counterfactual:
    """A text without a few of its words, and its label."""

    text: str  # the whole text
    label: Any  # of the whole text
    removed: tuple[int, ...]  # numbers of the removed word occurrences, from 0
    words: tuple[str, ...]  # as they are written in the text
    spans: tuple[tuple[int, int], ...]
    new_label: Any  # of the text without them
    probability: float  # of the new label

    def __str__(self) -> str:
        words = ", ".join(f"'{word}'" for word in self.words)
        return f"without {words} the label is {self.new_label} (probability {self.probability:.2f}), not {self.label}"


def find_counterfactual(model: Pipeline, text: str, most: int = _MOST_REMOVED) -> Counterfactual | None:
    """Find the fewest words whose removal changes the label of a text.

    Parameters
    ----------
    model : Pipeline
        The model of a fitted classifier: `classifier.model_`.
    text : str
        The document.
    most : int, default=5
        Largest number of words to remove, at most 5.

    Returns
    -------
    Counterfactual or None
        Of several sets of the same size, the one after which the new label is most probable. None if no set of up to
        `most` words was found. One or two words are searched among all words of a text of up to 60 words; more, among
        those that matter most.

    """
    if model.labels.multilabel or model.kind != "mpad":
        raise InputError("the smallest change of a label is for mpad models with one label per document")
    if not 1 <= most <= _MOST_REMOVED:
        raise InputError(f"most must be from 1 to {_MOST_REMOVED}, not {most}")
    document = trace_document(model, text)
    n = len(document.ids)
    column = int(model.answer(document.graphs).logits[0].argmax())
    order: list[int] = list(range(n))
    for size in range(1, min(most, n) + 1):
        chosen = order[: _CANDIDATES[size]]
        best: tuple[float, tuple[int, ...], int] | None = None
        alone = np.zeros(n)
        for removed, logits in _without(document, combinations(chosen, size)):
            p = model.labels.probabilities(logits)
            if size == 1:
                alone[[places[0] for places in removed]] = p[:, column]
            for k in np.flatnonzero(logits.argmax(1) != column).tolist():
                new = int(logits[k].argmax())
                if best is None or p[k, new] > best[0]:
                    best = float(p[k, new]), removed[k], new
        if best is not None:
            return _describe(document, column, *best)
        if size == 1:
            order = np.argsort(alone, kind="stable").tolist()
    return None


def _without(
    document: TracedDocument, sets: Iterator[tuple[int, ...]]
) -> Iterator[tuple[list[tuple[int, ...]], NDArray[np.float32]]]:
    """Yield sets of words and the logits of the text without each, some at a time."""
    n = len(document.ids)
    step = max(1, _CHUNK // max(n, 1))
    for first in sets:
        some = [first, *(one for one, _ in zip(sets, range(step - 1), strict=False))]
        kept = np.ones((len(some), n), bool)
        kept[np.repeat(np.arange(len(some)), len(first)), list(chain.from_iterable(some))] = False
        yield some, document.model.answer(document.build(kept)).logits


def _describe(
    document: TracedDocument, column: int, probability: float, removed: tuple[int, ...], new: int
) -> Counterfactual:
    classes, places = document.model.labels.classes.tolist(), tuple(sorted(removed))
    spans = tuple(document.tokens.spans[place] for place in places)
    words = tuple(document.text[start:end] for start, end in spans)
    return Counterfactual(document.text, classes[column], places, words, spans, classes[new], probability)
