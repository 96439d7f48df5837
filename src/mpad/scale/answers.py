"""A model, and what is asked of it → columns: what `mpad predict` prints and what engines write."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.linear.potentials import count_words
from mpad.registry import find_kind
from mpad.storage.model_folder import read_kind
from mpad.text.tokenizer import Tokenizer

Kind = Literal["string", "int64", "double", "bool", "strings"]  # of a column; "strings": a list in each cell
Decide = Callable[[list[str]], tuple[list[Any], NDArray[np.float64] | None]]  # labels as people write them, certainty
OwnTokenizer = str | Tokenizer | Callable[[str], Iterable[str]] | None
_KINDS: dict[str, Kind] = {"U": "string", "O": "string", "i": "int64", "u": "int64", "f": "double", "b": "bool"}


@dataclass(frozen=True)
class Asked:
    """What is asked of a model beside the label."""

    proba: bool = False  # the probability of every class
    top: int | None = None  # that many of the likeliest classes
    reject_below: float | None = None  # no label where its probability is below that
    threshold: float | None = None  # of many labels, those above that, not above their own

    def __post_init__(self) -> None:
        if self.top is not None and self.top < 1:
            raise InputError(f"top must be at least 1, not {self.top}")
        for name in ("reject_below", "threshold"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise InputError(f"{name} is a probability, from 0 to 1, not {value}")


@dataclass(frozen=True)
class Answerer:
    """A loaded model that answers in columns."""

    decide: Decide
    classes: NDArray[Any]
    many: bool  # whether a document has many labels
    has_probabilities: bool
    asked: Asked
    words: Counter[str] = field(default_factory=Counter)  # all, unknown; empty documents

    def __post_init__(self) -> None:
        if self.asked.threshold is not None and not self.many:
            raise InputError("threshold is for many labels a document, this model gives one: use reject_below")
        if self.asked.reject_below is not None and self.many:
            raise InputError("reject_below is for one label a document, this model gives many: use threshold")

    @property
    def fields(self) -> dict[str, Kind]:
        """Names of the columns, in their order, and what is in them."""
        kind = _KINDS[self.classes.dtype.kind]
        fields: dict[str, Kind] = {"label": "strings" if self.many else kind}
        if not self.has_probabilities:
            return fields
        for k in range(1, (self.asked.top or 0) + 1):
            fields |= {f"class {k}": kind, f"probability {k}": "double"}
        if self.asked.top is None and not self.many:
            fields["probability"] = "double"
        return fields | ({f"p({name})": "double" for name in self.classes.tolist()} if self.asked.proba else {})

    def answer(self, texts: list[str]) -> list[list[Any]]:
        """The columns of some documents, a cell for each of them, in their order."""
        decided, p = self.decide(texts)
        if p is None:
            return [[list(map(str, labels)) for labels in decided] if self.many else decided]
        best = self._best(p) if self.asked.top else [] if self.many else [p.max(axis=1).tolist()]
        return [self._labels(decided, p), *best, *(p.T.tolist() if self.asked.proba else [])]

    def _labels(self, decided: list[Any], p: NDArray[np.float64]) -> list[Any]:
        asked = self.asked
        if self.many:
            if asked.threshold is not None:
                decided = [self.classes[row].tolist() for row in p > asked.threshold]
            return [list(map(str, labels)) for labels in decided]
        if asked.reject_below is None:
            return decided
        sure = (p.max(axis=1) >= asked.reject_below).tolist()
        return [label if certain else None for label, certain in zip(decided, sure, strict=True)]

    def _best(self, p: NDArray[np.float64]) -> list[list[Any]]:
        """Class and probability of the likeliest, by turns; nothing where there are no more classes."""
        top = self.asked.top or 0
        order = (-p).argsort(axis=1, kind="stable")[:, :top]
        columns: list[list[Any]] = []
        for chosen in order.T:
            columns += [self.classes[chosen].tolist(), p[np.arange(len(p)), chosen].tolist()]
        return columns + [[None] * len(p) for _ in range(2 * (top - order.shape[1]))]


def load_answerer(folder: Path, asked: Asked, device: str = "cpu", tokenizer: OwnTokenizer = None) -> Answerer:
    """Read a model folder; on a CPU by NumPy alone, where its model can be."""
    entry = find_kind(read_kind(folder))
    if device == "cpu" and entry is not None and entry.without_torch:  # torch alone takes two seconds to import
        from mpad import inference

        return _by_pipeline(inference.load(folder, tokenizer), asked)
    from mpad.estimator.text_classifier import TextClassifier
    from mpad.paper import zoo

    result = zoo.load(folder, device, tokenizer)
    if isinstance(result, TextClassifier):
        return _by_logits(result.model_, asked)
    certain, labels = entry is not None and entry.probabilities, result.labels_

    def decide(texts: list[str]) -> tuple[list[Any], Any]:
        return labels.to_names(result.predict(texts)), result.predict_proba(texts) if certain else None

    return Answerer(decide, labels.classes, labels.multilabel, certain, asked)


def _by_pipeline(model: Any, asked: Asked) -> Answerer:
    labels, words = model.labels, Counter[str]()

    def decide(texts: list[str]) -> tuple[list[Any], Any]:
        parts = list(model.answers(texts))
        for graphs, _ in parts:
            each, unknown = count_words(graphs, len(model.vocabulary))
            words.update({"all": int(each.sum()), "unknown": int(unknown.sum()), "empty": int((each == 0).sum())})
        logits = np.concatenate([answer.logits for _, answer in parts])
        return labels.to_names(labels.decide(logits)), labels.probabilities(logits)

    return Answerer(decide, labels.classes, labels.multilabel, True, asked, words)


def _by_logits(model: Any, asked: Asked) -> Answerer:
    labels = model.labels

    def decide(texts: list[str]) -> tuple[list[Any], Any]:
        logits = model.logits(texts)
        return labels.to_names(labels.decide(logits)), labels.probabilities(logits)

    return Answerer(decide, labels.classes, labels.multilabel, True, asked)
