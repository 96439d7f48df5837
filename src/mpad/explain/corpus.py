"""Explanation of a dataset: the words and word pairs that most support each class, with examples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
class _FeatureSum:
    weight: float = 0.0
    documents: int = 0
    strongest: float = 0.0
    example: str = ""

    def add(self, weight: float, text: str, start: int, end: int) -> None:
        self.weight += weight
        self.documents += 1
        if weight > self.strongest:
            self.strongest, self.example = weight, _excerpt(text, start, end)


@dataclass
class _ClassSums:
    documents: int = 0
    words: dict[str, _FeatureSum] = field(default_factory=dict)
    edges: dict[str, _FeatureSum] = field(default_factory=dict)


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
    sums: dict[Any, _ClassSums] = {label: _ClassSums() for label in model.labels.classes.tolist()}
    labels = list(sums)
    for text, columns in zip(texts, model.labels.columns(model.predict_proba(texts)), strict=True):
        for column in columns:
            _add_explanation(explain(model, text, labels[column], method), sums[labels[column]])
        done()
    return [
        ClassFeatures(
            label,
            own.documents,
            _rank_features(own.words, own.documents, n),
            _rank_features(own.edges, own.documents, n),
        )
        for label, own in sums.items()
    ]


def _add_explanation(explanation: Explanation, own: _ClassSums) -> None:
    own.documents += 1
    for name, places in explanation.places().items():
        occurrences = [explanation.words[place] for place in places]
        weight = sum(word.weight for word in occurrences)
        own.words.setdefault(name, _FeatureSum()).add(
            weight, explanation.text, occurrences[0].start, occurrences[0].end
        )
    for edge in explanation.edges:
        (start, _), (_, end) = edge.spans[0] if edge.spans else ((0, 0), (0, 0))
        name = f"{display_word(edge.source)} → {display_word(edge.target)}"
        own.edges.setdefault(name, _FeatureSum()).add(edge.weight, explanation.text, min(start, end), max(start, end))


def _rank_features(features: dict[str, _FeatureSum], documents: int, n: int) -> list[ClassFeature]:
    ranked = sorted(features.items(), key=lambda item: -item[1].weight)[:n]
    return [
        ClassFeature(name, one.weight / documents, one.documents, one.example) for name, one in ranked if one.weight > 0
    ]


def _excerpt(text: str, start: int, end: int) -> str:
    excerpt = " ".join(text[max(0, start - _CONTEXT) : end + _CONTEXT].split())
    return f"{'… ' if start > _CONTEXT else ''}{excerpt}{' …' if end + _CONTEXT < len(text) else ''}"
