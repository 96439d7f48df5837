"""What people call classes ↔ columns of the network's answer.

Two kinds of task: one label a document (softmax over the classes), and many labels a document, given as a binary
indicator matrix (one sigmoid a column).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError, NotFinite


@dataclass(frozen=True)
class Labels:
    """The classes of a task, in the order of the network's outputs."""

    classes: NDArray[Any]  # (n_classes,)
    multilabel: bool = False

    def __len__(self) -> int:
        return len(self.classes)

    def encode(self, y: NDArray[Any]) -> NDArray[Any]:
        """Labels → class numbers (n,), or the indicator matrix as floats (n, n_classes)."""
        if self.multilabel:
            if y.shape[1:] != (len(self),):
                raise InputError(f"expected labels of shape (documents, {len(self)}), found {y.shape}")
            return y.astype(np.float32)
        number = np.searchsorted(self.classes, y).clip(max=len(self) - 1)
        unknown = self.classes[number] != y
        if unknown.any():
            raise InputError(
                f"label '{y[unknown][0]}' is not among the model's classes ({', '.join(map(str, self.classes))})"
            )
        return number.astype(np.int64)

    def probabilities(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """Logits → probabilities: rows that sum to 1, or one independent probability a label."""
        _check_finite(logits)
        scores = logits.astype(np.float64)
        if self.multilabel:
            return np.asarray(1.0 / (1.0 + np.exp(-np.clip(scores, -500, 500))))
        scores -= scores.max(axis=1, keepdims=True)
        exponential = np.exp(scores)
        return np.asarray(exponential / exponential.sum(axis=1, keepdims=True))

    def decide(self, logits: NDArray[np.float32]) -> NDArray[Any]:
        """Logits → labels: the likeliest class, or every label with probability above a half."""
        _check_finite(logits)
        if self.multilabel:
            return (logits > 0).astype(np.int64)
        return np.asarray(self.classes[logits.argmax(axis=1)])

    def decide_or_reject(self, logits: NDArray[np.float32], below: float) -> NDArray[Any]:
        """Logits → the likeliest class of each document, or None where its probability is below that."""
        if self.multilabel:
            raise InputError("reject_below is for one label a document")
        if not 0.0 <= below <= 1.0:
            raise InputError(f"reject_below is a probability, from 0 to 1, not {below}")
        decided = self.decide(logits).astype(object)
        decided[self.probabilities(logits).max(axis=1) < below] = None
        return decided

    def weights(
        self, class_weight: Mapping[Any, float] | Literal["balanced"] | None, encoded: NDArray[Any]
    ) -> NDArray[np.float32]:
        """What each document counts in the loss: (n,), by its class; all 1 without class weights."""
        if class_weight is None:
            return np.ones(len(encoded), np.float32)
        if self.multilabel:
            raise InputError("class_weight is for one label a document; use sample_weight with an indicator matrix")
        if isinstance(class_weight, Mapping):
            unknown = set(class_weight) - set(self.classes.tolist())
            if unknown:
                raise InputError(f"class_weight names labels that y does not have: {sorted(map(str, unknown))}")
        elif class_weight != "balanced":
            raise InputError(
                f"class_weight must be 'balanced', a dict from label to weight, or None, not {class_weight!r}"
            )
        if isinstance(class_weight, Mapping):
            by_class = np.array([class_weight.get(label, 1.0) for label in self.classes.tolist()])
        else:
            by_class = len(encoded) / (len(self) * np.bincount(encoded, minlength=len(self)))  # as scikit-learn does
        return np.asarray(by_class[encoded], np.float32)

    def to_json(self) -> dict[str, Any]:
        """Describe the classes so that `from_json` gives them back, their type included."""
        return {
            "classes": self.classes.tolist(),
            "type": self.classes.dtype.kind,
            "multilabel": self.multilabel,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Labels":
        """Give back what `to_json` described."""
        classes, kind = record["classes"], record["type"]
        if not isinstance(classes, list) or len(classes) < 2:
            raise TypeError("expected a list of at least two classes")
        types = {"U": (str,), "O": (str,), "i": (int,), "u": (int,), "f": (int, float), "b": (bool,)}
        if not isinstance(kind, str) or kind not in types or not all(type(label) in types[kind] for label in classes):
            raise TypeError(f"classes are not all of type {kind!r}")
        if len(set(classes)) < len(classes) or type(record["multilabel"]) is not bool:
            raise ValueError("a class stands there twice, or 'multilabel' is neither true nor false")
        if classes != sorted(classes) or any("\0" in label for label in classes if isinstance(label, str)):
            raise ValueError("classes stand in their order, and hold no NUL")
        as_numpy = {"U": np.str_, "O": object, "i": np.int64, "u": np.uint64, "f": np.float64, "b": np.bool_}
        return cls(np.array(classes, dtype=as_numpy[kind]), record["multilabel"])


def rightness(logits: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.float64]:
    """1 for a right document; of many labels a document, the share of right cells: (documents,)."""
    if targets.ndim == 2:
        return np.asarray(((logits > 0) == (targets > 0.5)).mean(1))
    return np.asarray(logits.argmax(1) == targets, np.float64)


def _check_finite(logits: NDArray[Any]) -> None:
    if not np.isfinite(logits).all():
        raise NotFinite(
            "the model's answer is NaN or infinite: its weights are damaged or have diverged; train it again"
        )


def as_labels(y: Any) -> NDArray[Any]:
    """Check labels as people hand them in: a list, array, Series, or (sparse) indicator matrix."""
    if hasattr(y, "toarray"):
        y = y.toarray()
    listed = y.tolist() if hasattr(y, "tolist") else list(y)
    missing = [k for k, label in enumerate(listed) if label is None or (isinstance(label, float) and label != label)]
    if missing:
        raise InputError(f"the label of document {missing[0]} is missing ({listed[missing[0]]}); drop it or label it")
    if {isinstance(label, str) for label in listed} == {True, False}:
        raise InputError("labels mix strings and other types; make them all strings or all numbers")
    for label in listed:
        if isinstance(label, str) and "\0" in label:
            raise InputError(f"a label holds a NUL character: {label[:40]!r}; remove it")
        if isinstance(label, (bytes, dict, set)) or (isinstance(label, (list, tuple)) and not _are_numbers(label)):
            raise InputError(
                f"labels are strings or numbers, not {type(label).__name__} ({label!r:.40}); for many labels a "
                "document give a binary indicator matrix (scikit-learn's MultiLabelBinarizer makes one)"
            )
    try:
        return np.asarray(y)
    except ValueError:
        raise InputError(
            "labels have different lengths; for many labels a document give a binary indicator matrix "
            "(scikit-learn's MultiLabelBinarizer makes one)"
        ) from None


def _are_numbers(row: Sequence[Any]) -> bool:
    """Whether this may be a row of an indicator matrix."""
    return all(isinstance(value, (bool, int, float)) for value in row)


def learn_labels(y: NDArray[Any]) -> Labels:
    """Find the classes of a training set."""
    if y.ndim == 2 and y.shape[1] > 1:
        if not np.isin(y, (0, 1)).all():
            raise InputError("a matrix of labels must be a binary indicator matrix: only 0 and 1")
        constant = np.flatnonzero(y.min(axis=0) == y.max(axis=0))
        if len(constant) == y.shape[1]:
            raise InputError("every column of y is constant: there is nothing to learn")
        return Labels(np.arange(y.shape[1]), multilabel=True)
    if y.ndim != 1:
        raise InputError(f"expected one label a document or a binary indicator matrix, found shape {y.shape}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InputError("labels hold NaN or infinity; drop those rows or label them")
    try:
        classes = np.unique(y)
    except TypeError:
        raise InputError("labels mix types that cannot be ordered; make them all strings or all numbers") from None
    if len(classes) < 2:
        only = f"only '{classes[0]}'" if len(classes) else "none"
        raise InputError(f"a classifier needs at least two classes in y; found {only}")
    return Labels(classes)
