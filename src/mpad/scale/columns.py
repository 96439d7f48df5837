"""Predictions as columns, as `mpad predict` prints them and engines write them."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.linear.potentials import count_words
from mpad.registry import find_kind
from mpad.storage.model_folder import read_kind
from mpad.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from mpad.inference.pipeline import Pipeline

Kind = Literal["string", "int64", "double", "bool", "strings"]  # type of a column; "strings" is a list per cell
PredictTexts = Callable[[list[str]], tuple[list[Any], NDArray[np.float64] | None]]  # texts → labels, probabilities
OwnTokenizer = str | Tokenizer | Callable[[str], Iterable[str]] | None
_KINDS: dict[str, Kind] = {"U": "string", "O": "string", "i": "int64", "u": "int64", "f": "double", "b": "bool"}


@dataclass(frozen=True)
class PredictOptions:
    """Options of a prediction, as of `mpad predict`."""

    proba: bool = False  # add the probability of every class
    top: int | None = None  # add this many of the most probable classes
    reject_below: float | None = None  # leave the label empty below this probability
    threshold: float | None = None  # multi-label: one threshold for all labels, instead of the fitted ones

    def __post_init__(self) -> None:
        if self.top is not None and self.top < 1:
            raise InputError(f"top must be at least 1, not {self.top}")
        for name in ("reject_below", "threshold"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise InputError(f"{name} is a probability, from 0 to 1, not {value}")


@dataclass(frozen=True)
class ColumnPredictor:
    """Loaded model whose predictions are columns."""

    predict_texts: PredictTexts
    classes: NDArray[Any]
    many: bool  # multi-label
    has_probabilities: bool
    options: PredictOptions
    words: Counter[str] = field(default_factory=Counter)  # counts of all and unknown words, and of empty documents

    def __post_init__(self) -> None:
        if self.options.threshold is not None and not self.many:
            raise InputError("threshold is for multi-label models, this model gives one: use reject_below")
        if self.options.reject_below is not None and self.many:
            raise InputError("reject_below is for single-label models, this model gives many: use threshold")

    @property
    def fields(self) -> dict[str, Kind]:
        """Names and types of the columns, in order."""
        kind = _KINDS[self.classes.dtype.kind]
        fields: dict[str, Kind] = {"label": "strings" if self.many else kind}
        if not self.has_probabilities:
            return fields
        for k in range(1, (self.options.top or 0) + 1):
            fields |= {f"class {k}": kind, f"probability {k}": "double"}
        if self.options.top is None and not self.many:
            fields["probability"] = "double"
        return fields | ({f"p({name})": "double" for name in self.classes.tolist()} if self.options.proba else {})

    def predict(self, texts: list[str]) -> list[list[Any]]:
        """Return the columns of `fields`, with one cell per document."""
        labels, p = self.predict_texts(texts)
        if p is None:
            return [[list(map(str, row)) for row in labels] if self.many else labels]
        best = self._top_classes(p) if self.options.top else [] if self.many else [p.max(axis=1).tolist()]
        return [self._select_labels(labels, p), *best, *(p.T.tolist() if self.options.proba else [])]

    def _select_labels(self, labels: list[Any], p: NDArray[np.float64]) -> list[Any]:
        """Apply `threshold` or `reject_below`."""
        options = self.options
        if self.many:
            if options.threshold is not None:
                labels = [self.classes[row].tolist() for row in p > options.threshold]
            return [list(map(str, row)) for row in labels]
        if options.reject_below is None:
            return labels
        accepted = (p.max(axis=1) >= options.reject_below).tolist()
        return [label if keep else None for label, keep in zip(labels, accepted, strict=True)]

    def _top_classes(self, p: NDArray[np.float64]) -> list[list[Any]]:
        """Return class and probability columns of the most probable classes; empty beyond the number of classes."""
        top = self.options.top or 0
        order = (-p).argsort(axis=1, kind="stable")[:, :top]
        columns: list[list[Any]] = []
        for chosen in order.T:
            columns += [self.classes[chosen].tolist(), p[np.arange(len(p)), chosen].tolist()]
        return columns + [[None] * len(p) for _ in range(2 * (top - order.shape[1]))]


def load_column_predictor(
    folder: Path, options: PredictOptions, device: str = "cpu", tokenizer: OwnTokenizer = None
) -> ColumnPredictor:
    """Load a model folder, without torch on a CPU if the model allows it."""
    entry = find_kind(read_kind(folder))
    if device == "cpu" and entry is not None and entry.without_torch:  # importing torch takes two seconds
        from mpad import inference

        return _of_pipeline(inference.load(folder, tokenizer), options)
    from mpad.estimator.classifier import TextClassifier
    from mpad.paper import zoo

    model = zoo.load(folder, device, tokenizer)
    if isinstance(model, TextClassifier):
        return _of_pipeline(model.model_, options)
    has_probabilities, labels = entry is not None and entry.probabilities, model.labels_

    def predict(texts: list[str]) -> tuple[list[Any], Any]:
        return labels.to_names(model.predict(texts)), model.predict_proba(texts) if has_probabilities else None

    return ColumnPredictor(predict, labels.classes, labels.multilabel, has_probabilities, options)


def _of_pipeline(model: "Pipeline", options: PredictOptions) -> ColumnPredictor:
    labels, words = model.labels, Counter[str]()

    def predict(texts: list[str]) -> tuple[list[Any], Any]:
        parts = list(model.answers(texts))
        for graphs, _ in parts if model.kind == "mpad" else ():
            each, unknown = count_words(graphs, len(model.vocabulary))
            words.update({"all": int(each.sum()), "unknown": int(unknown.sum()), "empty": int((each == 0).sum())})
        logits = np.concatenate([answer.logits for _, answer in parts])
        return labels.to_names(labels.decide(logits)), labels.probabilities(logits)

    return ColumnPredictor(predict, labels.classes, labels.multilabel, True, options, words)
