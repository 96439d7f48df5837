"""Assembly of an Explanation from the weights of a document's parts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.data.labels import Labels
from mpad.explain.document import PartWeights, Weights
from mpad.explain.explanation import EdgeWeight, Explanation, SentenceWeight, WordWeight
from mpad.text.tokenizer import Tokens


def list_or_nones(weights: Weights | None, n: int) -> list[float | None]:
    """Return weights as a list, or n times None if there are none."""
    return [None] * n if weights is None else weights.tolist()


def assemble(
    text: str,
    tokens: Tokens,
    labels: Labels,
    probabilities: NDArray[np.float64],
    column: int,
    method: str,
    parts: PartWeights,
    edges: tuple[EdgeWeight, ...] = (),
) -> Explanation:
    """Return the explanation of class `column` with the weights of these parts."""
    classes: list[Any] = labels.classes.tolist()
    flags = labels.apply_thresholds(probabilities[None])[0] if labels.multilabel else []
    chosen = tuple(label for label, on in zip(classes, flags, strict=False) if on)
    sentence_of, spans = np.array(tokens.sentences, np.int64), tokens.spans
    sentences = []
    for number, weight in enumerate(parts.sentences.tolist()):
        members = np.flatnonzero(sentence_of == number)
        sentences.append(SentenceWeight(spans[members[0]][0], spans[members[-1]][1], weight))
    potentials = list_or_nones(parts.word_potentials, len(tokens.words))
    rows = zip(tokens.words, spans, tokens.sentences, parts.words.tolist(), potentials, strict=True)
    return Explanation(
        text=text,
        label=classes[column],
        predicted=chosen if labels.multilabel else classes[int(probabilities.argmax())],
        probabilities={label: float(p) for label, p in zip(classes, probabilities, strict=True)},
        method=method,
        words=tuple(WordWeight(word, *span, *numbers) for word, span, *numbers in rows),
        edges=edges,
        sentences=tuple(sentences),
        note=parts.note,
    )
