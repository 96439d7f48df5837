"""A whole dataset explained: which words and pairs of words speak most for each class, with examples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mpad.explain import explain
from mpad.explain.explanation import Explanation, shown
from mpad.pipeline.document_model import DocumentModel

_CONTEXT = 30  # characters on each side of an example


@dataclass(frozen=True)
class Telling:
    """A word, or a pair of words, that speaks for a class."""

    text: str
    weight: float  # summed over the documents of the class, per document of the class
    documents: int  # of the class that have it
    example: str  # where it weighs most


@dataclass(frozen=True)
class ClassView:
    """What speaks for a class, over the documents that the model gives it."""

    label: Any
    documents: int
    words: list[Telling]
    edges: list[Telling]


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


@dataclass
class _Tally:
    documents: int = 0
    words: dict[str, _Sum] = field(default_factory=dict)
    edges: dict[str, _Sum] = field(default_factory=dict)


def corpus_view(
    model: DocumentModel, texts: Sequence[str], method: str, n: int = 10, done: Callable[[], None] = lambda: None
) -> list[ClassView]:
    """Explain every document for each label that it gets, and add up; classes in the order of the model's."""
    tallies: dict[Any, _Tally] = {label: _Tally() for label in model.labels.classes.tolist()}
    labels = list(tallies)
    for text, columns in zip(texts, model.labels.columns(model.probabilities(texts)), strict=True):
        for column in columns:
            _count(explain(model, text, labels[column], method), tallies[labels[column]])
        done()
    return [
        ClassView(label, tally.documents, _strongest(tally.words, tally, n), _strongest(tally.edges, tally, n))
        for label, tally in tallies.items()
    ]


def _count(explanation: Explanation, tally: _Tally) -> None:
    tally.documents += 1
    for name, places in explanation.places().items():
        own = [explanation.words[place] for place in places]
        weight = sum(word.weight for word in own)
        tally.words.setdefault(name, _Sum()).add(weight, explanation.text, own[0].start, own[0].end)
    for edge in explanation.edges:
        (start, _), (_, end) = edge.spans[0] if edge.spans else ((0, 0), (0, 0))
        name = f"{shown(edge.source)} → {shown(edge.target)}"
        tally.edges.setdefault(name, _Sum()).add(edge.weight, explanation.text, min(start, end), max(start, end))


def _strongest(sums: dict[str, _Sum], tally: _Tally, n: int) -> list[Telling]:
    ranked = sorted(sums.items(), key=lambda item: -item[1].weight)[:n]
    return [
        Telling(name, result.weight / tally.documents, result.documents, result.example)
        for name, result in ranked
        if result.weight > 0
    ]


def _excerpt(text: str, start: int, end: int) -> str:
    shown = " ".join(text[max(0, start - _CONTEXT) : end + _CONTEXT].split())
    return f"{'… ' if start > _CONTEXT else ''}{shown}{' …' if end + _CONTEXT < len(text) else ''}"
