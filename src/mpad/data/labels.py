"""Class labels ↔ columns of the network's logits.

Two kinds of task: one label per document (softmax over the classes), or many labels per document, as lists of labels or
a binary indicator matrix (one sigmoid per column).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpad.data.inputs import as_labels, is_plain
from mpad.errors import InputError, NotFinite


@dataclass(frozen=True)
class Labels:
    """The classes of a task, in the order of the network's outputs."""

    classes: NDArray[Any]  # (n_classes,)
    multilabel: bool = False
    # Multi-label: a label is assigned above this probability, by default ½. One label per document: if the probability
    # of the chosen class is below its threshold, the document is undecided.
    thresholds: NDArray[np.float64] | None = None  # (n_classes,)
    costs: NDArray[np.float64] | None = None  # (n_classes, n_classes) of a true and a decided class; or one column more

    def __len__(self) -> int:
        return len(self.classes)

    @property
    def n_scores(self) -> int:
        """Number of scores of a linear model: one per class; a single one for two exclusive classes."""
        return 1 if len(self) == 2 and not self.multilabel else len(self)

    def encode(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return class numbers (n,), or the indicator matrix as floats (n, n_classes)."""
        if self.multilabel:
            if _are_lists(y):
                y = self._indicators(y)
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

    def _indicators(self, y: NDArray[Any]) -> NDArray[Any]:
        place = {label: column for column, label in enumerate(self.classes.tolist())}
        unknown = sorted({str(label) for row in y for label in row if label not in place})
        if unknown:
            raise InputError(f"label '{unknown[0]}' is not among the model's classes ({', '.join(map(str, place))})")
        matrix = np.zeros((len(y), len(self)), np.int64)
        for number, row in enumerate(y):
            matrix[number, [place[label] for label in row]] = 1
        return matrix

    def as_predicted(self, y: Any) -> Any:
        """Return true labels in the form of predictions: for multi-label tasks, indicators (n, n_classes)."""
        return self.encode(as_labels(y)).astype(np.int64) if self.multilabel else y

    def to_names(self, decided: NDArray[Any]) -> list[Any]:
        """Return predictions as labels: one per document, or for multi-label tasks a list per document."""
        names = self.classes.tolist()
        if not self.multilabel:
            return list(decided.tolist())
        return [[name for name, on in zip(names, row, strict=True) if on] for row in decided.tolist()]

    def probabilities(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """Turn logits into probabilities: rows that sum to 1, or one independent probability per label."""
        _check_finite(logits)
        scores = logits.astype(np.float64)
        if self.multilabel:
            return np.asarray(1.0 / (1.0 + np.exp(-np.clip(scores, -500, 500))))
        scores -= scores.max(axis=1, keepdims=True)
        exponential = np.exp(scores)
        return np.asarray(exponential / exponential.sum(axis=1, keepdims=True))

    def decide(self, logits: NDArray[np.float32]) -> NDArray[Any]:
        """Turn logits into labels: the most likely class, or every label above its threshold.

        With thresholds or costs, a document with one label may be undecided: its label is None.
        """
        _check_finite(logits)
        if self.multilabel:
            least = 0.0 if self.thresholds is None else np.log(self.thresholds / (1 - self.thresholds))
            return np.asarray(logits > least, np.int64)
        if self.thresholds is None and self.costs is None:
            return np.asarray(self.classes[logits.argmax(axis=1)])
        column = self.choose(self.probabilities(logits))
        decided = self.classes[np.maximum(column, 0)].astype(object)
        decided[column < 0] = None
        return np.asarray(decided)

    def choose(self, probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the class number of each document by the least expected cost; -1: undecided (one label each)."""
        n, every = len(self), np.arange(len(probabilities))
        column = np.asarray((probabilities if self.costs is None else -(probabilities @ self.costs)).argmax(1))
        column = np.where(column < n, column, -1)
        if self.thresholds is not None:
            column[probabilities[every, column] < self.thresholds[column]] = -1
        return column

    def apply_thresholds(self, probabilities: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which labels exceed their thresholds: (n, n_classes)."""
        return np.asarray(probabilities > (0.5 if self.thresholds is None else self.thresholds))

    def columns(self, probabilities: NDArray[np.float64]) -> list[list[int]]:
        """Return the predicted columns: the most likely one, or for multi-label data all above their thresholds."""
        if self.multilabel:
            return [np.flatnonzero(row).tolist() for row in self.apply_thresholds(probabilities)]
        return [[column] for column in probabilities.argmax(1).tolist()]

    def decide_or_reject(self, logits: NDArray[np.float32], below: float) -> NDArray[Any]:
        """Return the most likely class of each document, or None if its probability is below `below`."""
        if self.multilabel:
            raise InputError("reject_below is for one label per document")
        if not 0.0 <= below <= 1.0:
            raise InputError(f"reject_below is a probability, from 0 to 1, not {below}")
        decided = self.decide(logits).astype(object)
        decided[self.probabilities(logits).max(axis=1) < below] = None
        return decided

    def weights(
        self, class_weight: Mapping[Any, float] | Literal["balanced"] | None, encoded: NDArray[Any]
    ) -> NDArray[np.float32]:
        """Return each document's weight in the loss, by its class: (n,); all 1 without class weights."""
        if class_weight is None:
            return np.ones(len(encoded), np.float32)
        if self.multilabel:
            raise InputError("class_weight is for one label per document; use sample_weight with an indicator matrix")
        if isinstance(class_weight, Mapping):
            unknown = set(class_weight) - set(self.classes.tolist())
            if unknown:
                raise InputError(f"class_weight names labels that y does not have: {sorted(map(str, unknown))}")
            by_class = np.array([class_weight.get(label, 1.0) for label in self.classes.tolist()])
        elif class_weight == "balanced":
            by_class = len(encoded) / (len(self) * np.bincount(encoded, minlength=len(self)))  # as scikit-learn does
        else:
            raise InputError(
                f"class_weight must be 'balanced', a dict from label to weight, or None, not {class_weight!r}"
            )
        return np.asarray(by_class[encoded], np.float32)

    def to_json(self) -> dict[str, Any]:
        """Return the classes and their type as JSON for `from_json`."""
        return {
            "classes": self.classes.tolist(),
            "type": self.classes.dtype.kind,
            "multilabel": self.multilabel,
            **({} if self.thresholds is None else {"thresholds": self.thresholds.tolist()}),
            **({} if self.costs is None else {"costs": self.costs.tolist()}),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Labels":
        """Restore labels from the JSON of `to_json`, checking every value."""
        classes, kind = record["classes"], record["type"]
        if not isinstance(classes, list) or len(classes) < 2:
            raise TypeError("expected a list of at least two classes")
        types = {"U": (str,), "O": (str,), "i": (int,), "u": (int,), "f": (int, float), "b": (bool,)}
        if not isinstance(kind, str) or kind not in types or not all(type(label) in types[kind] for label in classes):
            raise TypeError(f"classes are not all of type {kind!r}")
        if len(set(classes)) < len(classes) or type(record["multilabel"]) is not bool:
            raise ValueError("a class is listed twice, or 'multilabel' is neither true nor false")
        if (classes != sorted(classes) and not record["multilabel"]) or any(
            not is_plain(label) for label in classes if isinstance(label, str)
        ):
            raise ValueError("classes are sorted, and hold no NUL and no half of a surrogate pair")
        as_numpy = {"U": np.str_, "O": object, "i": np.int64, "u": np.uint64, "f": np.float64, "b": np.bool_}
        thresholds, costs = record.get("thresholds"), record.get("costs")
        if thresholds is not None:
            least, most = (1e-12, 1 - 1e-12) if record["multilabel"] else (0, 1)
            numbers = isinstance(thresholds, list) and all(type(p) is float and least <= p <= most for p in thresholds)
            if not numbers or len(thresholds) != len(classes):
                raise ValueError("thresholds are probabilities, one per label")
            thresholds = np.array(thresholds)
        if costs is not None:
            costs = _check_costs(costs, len(classes), record["multilabel"])
        return cls(np.array(classes, dtype=as_numpy[kind]), record["multilabel"], thresholds, costs)


def _check_costs(costs: Any, n_classes: int, multilabel: bool) -> NDArray[np.float64]:
    rows = costs if isinstance(costs, list) and all(isinstance(row, list) for row in costs) else []
    widths = {len(row) for row in rows}
    plain = all(type(cost) in (int, float) and 0 <= cost < float("inf") for row in rows for cost in row)
    if (
        multilabel
        or len(rows) != n_classes
        or not widths <= {n_classes, n_classes + 1}
        or len(widths) != 1
        or not plain
    ):
        raise ValueError("costs are numbers from 0: a row per class, a column per class and perhaps one for undecided")
    return np.array(rows, np.float64)


_GRID = np.arange(1, 20) / 20  # candidate thresholds
_ENOUGH = 20  # least documents of a label that gets its own threshold


def fit_thresholds(probabilities: NDArray[np.float64], targets: NDArray[Any]) -> NDArray[np.float64]:
    """Fit the probability above which each label is assigned, by F1 on these documents: (n_classes,).

    Frequent labels have their own threshold, rare ones share one. Ties go to the threshold closest to ½.
    """
    truth, half = targets > 0.5, int(np.flatnonzero(_GRID == 0.5)[0])
    assigned = probabilities[:, :, None] > _GRID  # (documents, labels, thresholds)
    both = (assigned & truth[:, :, None]).sum(0)
    f1 = 2 * both / np.maximum(assigned.sum(0) + truth.sum(0)[:, None], 1)
    micro = 2 * both.sum(0) / np.maximum(assigned.sum((0, 1)) + truth.sum(), 1)

    def best(scores: NDArray[np.float64]) -> float:
        near = np.abs(np.arange(len(_GRID)) - half)
        return float(_GRID[np.lexsort((near, -scores))[0]])

    return np.array([best(f1[k] if truth[:, k].sum() >= _ENOUGH else micro) for k in range(truth.shape[1])])


def rightness(logits: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.float64]:
    """Return 1 per correct document, else 0; for multi-label tasks the share of correct labels: (documents,)."""
    if targets.ndim == 2:
        return np.asarray(((logits > 0) == (targets > 0.5)).mean(1))
    return np.asarray(logits.argmax(1) == targets, np.float64)


def _check_finite(logits: NDArray[Any]) -> None:
    if not np.isfinite(logits).all():
        raise NotFinite(
            "the model's prediction is NaN or infinite: its weights are damaged or have diverged; train it again"
        )


def _are_lists(y: NDArray[Any]) -> bool:
    return y.dtype == object and y.ndim == 1 and len(y) > 0 and isinstance(y[0], tuple)


def as_lists(labels: Sequence[Any]) -> list[list[str]]:
    """Return a list of label names per document, from single labels, lists of them, or None for undecided."""
    lists = (own if isinstance(own, (list, tuple)) else [] if own is None else [own] for own in labels)
    return [[str(one) for one in own] for own in lists]


def learn_labels(y: NDArray[Any], names: Sequence[str] | None = None) -> Labels:
    """Find the classes of a training set; `names` are the columns of an indicator matrix."""
    if _are_lists(y):
        known = sorted({label for row in y for label in row})
        if len(known) < 2:
            raise InputError(f"a classifier needs at least two labels in y; found {', '.join(known) or 'none'}")
        return Labels(np.array(known), multilabel=True)
    if y.ndim == 2 and y.shape[1] > 1:
        if not np.isin(y, (0, 1)).all():
            raise InputError("a matrix of labels must be a binary indicator matrix: only 0 and 1")
        constant = np.flatnonzero(y.min(axis=0) == y.max(axis=0))
        if len(constant) == y.shape[1]:
            raise InputError("every column of y is constant: there is nothing to learn")
        return Labels(np.arange(y.shape[1]) if names is None else np.array(names), multilabel=True)
    if y.ndim != 1:
        raise InputError(f"expected one label per document or a binary indicator matrix, found shape {y.shape}")
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
