"""Predictions as columns, as `mpad predict` prints them and engines write them."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpad.data.labels import as_lists
from mpad.errors import InputError
from mpad.scale.text_model import OwnTokenizer, TextModel

Kind = Literal["string", "int64", "double", "bool", "strings"]  # type of a column; "strings" is a list per cell
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

    model: TextModel
    options: PredictOptions
    words: Counter[str] = field(default_factory=Counter)  # counts of all and unknown words, and of empty documents

    def __post_init__(self) -> None:
        if self.options.threshold is not None and not self.many:
            raise InputError("threshold is for multi-label models, this model gives one: use reject_below")
        if self.options.reject_below is not None and self.many:
            raise InputError("reject_below is for single-label models, this model gives many: use threshold")

    @property
    def many(self) -> bool:
        """Return whether the model is multi-label."""
        return self.model.labels.multilabel

    @property
    def fields(self) -> dict[str, Kind]:
        """Names and types of the columns, in order."""
        classes = self.model.labels.classes
        kind = _KINDS[classes.dtype.kind]
        fields: dict[str, Kind] = {"label": "strings" if self.many else kind}
        if not self.model.has_probabilities:
            return fields
        for k in range(1, (self.options.top or 0) + 1):
            fields |= {f"class {k}": kind, f"probability {k}": "double"}
        if self.options.top is None and not self.many:
            fields["probability"] = "double"
        return fields | ({f"p({name})": "double" for name in classes.tolist()} if self.options.proba else {})

    def predict(self, texts: list[str]) -> list[list[Any]]:
        """Return the columns of `fields`, with one cell per document."""
        labels, p, words = self.model.predict(texts)
        if words is not None:
            total, unknown = words.sum(axis=0).tolist()
            self.words.update({"all": total, "unknown": unknown, "empty": int((words[:, 0] == 0).sum())})
        columns = [self._select_labels(labels, p)]
        if p is None:
            return columns
        best = self._top_classes(p) if self.options.top else [] if self.many else [p.max(axis=1).tolist()]
        return [*columns, *best, *(p.T.tolist() if self.options.proba else [])]

    def _select_labels(self, labels: list[Any], p: NDArray[np.float64] | None) -> list[Any]:
        """Apply `threshold` or `reject_below`."""
        threshold, least = self.options.threshold, self.options.reject_below
        if p is not None and threshold is not None:
            labels = [self.model.labels.classes[row].tolist() for row in p > threshold]
        if self.many:
            return as_lists(labels)
        if p is None or least is None:
            return labels
        return [label if highest >= least else None for label, highest in zip(labels, p.max(axis=1), strict=True)]

    def _top_classes(self, p: NDArray[np.float64]) -> list[list[Any]]:
        """Return class and probability columns of the most probable classes; empty beyond the number of classes."""
        top = self.options.top or 0
        order = (-p).argsort(axis=1, kind="stable")[:, :top]
        columns: list[list[Any]] = []
        for chosen in order.T:
            columns += [self.model.labels.classes[chosen].tolist(), p[np.arange(len(p)), chosen].tolist()]
        return columns + [[None] * len(p) for _ in range(2 * (top - order.shape[1]))]


def load_column_predictor(
    folder: Path, options: PredictOptions, device: str = "cpu", tokenizer: OwnTokenizer = None
) -> ColumnPredictor:
    """Load a model folder, without torch on a CPU if the model allows it."""
    return ColumnPredictor(TextModel(folder, tokenizer, device), options)
