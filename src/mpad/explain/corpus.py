"""Explanation of a dataset: the words and word pairs that most support each class, with examples."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mpad.explain import explain
from mpad.explain.explanation import Explanation, display_word
from mpad.inference.pipeline import Pipeline

_CONTEXT = 30  # characters on each side of the example


@dataclass(frozen=True)
class ClassFeature:
    """Word or pair of words that supports a class."""

    text: str
    weight: float  # sum over the documents of the class, divided by their number
    documents: int  # documents of the class that contain it
    example: str  # where it has the largest weight


@dataclass(frozen=True)
class ClassFeatures:
    """Features of a class, over the documents predicted as it."""

    label: Any
    documents: int
    words: list[ClassFeature]
    edges: list[ClassFeature]


@dataclass
class _Sum:
    weight: float = 0.0
    documents: int = 0
    strongest: float = 0.0
    example: str = ""

    def add(self, weight: float, text: str, start: int, end: int) -> None:
        self.weight += weight
        self.documents += 1
        if weight > self.strongest:
            self.strongest, self.example = weight, _excerpt(text, start, end)


_Sums = defaultdict[str, _Sum]  # by word, or by pair


def class_features(
    model: Pipeline, texts: Sequence[str], method: str, n: int = 10, done: Callable[[], None] = lambda: None
) -> list[ClassFeatures]:
    """Return the features of each class, from the explanations of documents for their predicted labels.

    Parameters
    ----------
    model : Pipeline
        The model of a fitted classifier: `classifier.model_`.
    texts : sequence of str
        Documents.
    method : {"gradients", "occlusion", "attention"}
        Explanation method.
    n : int, default=10
        Maximal number of words, and of pairs, per class.
    done : callable, optional
        Called after each document.

    Returns
    -------
    list of ClassFeatures
        One per class, in the order of the model's classes.

    """
    labels = model.labels.classes.tolist()
    documents = [0] * len(labels)
    sums: list[tuple[_Sums, _Sums]] = [(defaultdict(_Sum), defaultdict(_Sum)) for _ in labels]
    for text, columns in zip(texts, model.labels.columns(model.predict_proba(texts)), strict=True):
        for column in columns:
            documents[column] += 1
            _add_explanation(explain(model, text, labels[column], method), *sums[column])
        done()
    return [
        ClassFeatures(label, count, _rank_features(words, count, n), _rank_features(edges, count, n))
        for label, count, (words, edges) in zip(labels, documents, sums, strict=True)
    ]


def _add_explanation(explanation: Explanation, words: _Sums, edges: _Sums) -> None:
    for name, places in explanation.places().items():
        first, weight = explanation.words[places[0]], sum(explanation.words[place].weight for place in places)
        words[name].add(weight, explanation.text, first.start, first.end)
    for edge in explanation.edges:
        (start, _), (_, end) = edge.spans[0] if edge.spans else ((0, 0), (0, 0))
        name = f"{display_word(edge.source)} → {display_word(edge.target)}"
        edges[name].add(edge.weight, explanation.text, min(start, end), max(start, end))


def _rank_features(sums: _Sums, documents: int, n: int) -> list[ClassFeature]:
    ranked = sorted(sums.items(), key=lambda item: -item[1].weight)[:n]
    return [
        ClassFeature(name, one.weight / documents, one.documents, one.example) for name, one in ranked if one.weight > 0
    ]


def _excerpt(text: str, start: int, end: int) -> str:
    excerpt = " ".join(text[max(0, start - _CONTEXT) : end + _CONTEXT].split())
    return f"{'… ' if start > _CONTEXT else ''}{excerpt}{' …' if end + _CONTEXT < len(text) else ''}"
