"""Choose when a model decides for a class: thresholds and costs for a stated goal.

- A precision: below its threshold a class is not trusted, and the document is undecided. Each class has the lowest
  threshold at which the decisions for it have that precision.
- A recall: a class that is missed too often is preferred by a higher cost of missing it.
- A cost matrix: the class with the least expected cost is chosen, or none, if that is cheaper.

All are chosen on documents that the model was not trained on, and stored in the model.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.data.labels import Labels
from mpad.errors import InputError
from mpad.estimator.held_out_scores import Share, wilson

UNDECIDED = "undecided"
_STEP, _TURNS = 1.05, 400  # by which the cost of missing a class rises at a time, at most so often

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ClassDecisions:
    """Decisions for a class, measured on the documents that they were chosen on."""

    name: Any
    threshold: float
    cost: float  # of missing the class, in units of the smallest cost
    decided: int  # documents
    precision: Share
    recall: Share


@dataclass(frozen=True)
class Decisions:
    """Rule for deciding, and what it does on the documents that it was chosen on."""

    labels: Labels  # with thresholds and costs
    coverage: Share  # documents that are decided
    accuracy: Share  # of these
    classes: list[ClassDecisions]

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Return column names and a row per class."""
        columns = ["class", "threshold", "cost of missing", "decided", "precision", "low (95 %)", "recall"]
        rows = [
            [str(c.name), c.threshold, c.cost, c.decided, c.precision.value, c.precision.low, c.recall.value]
            for c in self.classes
        ]
        return columns, rows


def choose_decisions(
    labels: Labels,
    probabilities: Floats,
    targets: Rows,
    *,
    precision: float | None = None,
    recall: float | None = None,
    costs: Floats | None = None,
    only: Sequence[Any] | None = None,
) -> Decisions:
    """Choose thresholds and costs for a goal, on documents that the model was not trained on.

    Parameters
    ----------
    labels : Labels
        The classes of the model; thresholds and costs that it has are replaced.
    probabilities : ndarray of shape (n_documents, n_classes)
        Those of the model.
    targets : ndarray of int
        Number of the true class of each document.
    precision : float, optional
        Least share of correct decisions for a class.
    recall : float, optional
        Least share of the documents of a class that are decided correctly.
    costs : ndarray of shape (n_classes, n_classes) or (n_classes, n_classes + 1), optional
        Cost of deciding for a class (column) if another one is true (row); a further column is for undecided.
    only : sequence, optional
        Classes that the goals are for; by default all.

    Returns
    -------
    Decisions

    """
    if labels.multilabel:
        raise InputError(
            "thresholds for a goal are for one label per document; those of a multi-label model are fitted"
        )
    for name, goal in (("precision", precision), ("recall", recall)):
        if goal is not None and not 0 < goal < 1:
            raise InputError(f"{name} must be above 0 and below 1, not {goal}")
    if precision is None and recall is None and costs is None:
        raise InputError("state a goal: a precision, a recall or costs")
    if recall is not None and costs is not None:
        raise InputError("a recall sets the costs: state one of them")
    if not len(targets):
        raise InputError("thresholds are chosen on documents; there are none")
    names = labels.classes.tolist()
    unknown = [str(name) for name in only or () if str(name) not in map(str, names)]
    if unknown:
        raise InputError(f"the model has no class '{unknown[0]}' (it has: {', '.join(map(str, names))})")
    meant = [k for k, name in enumerate(names) if only is None or str(name) in map(str, only)]
    rule = replace(labels, thresholds=None, costs=costs)
    if recall is not None:
        rule = replace(rule, costs=_costs_for_recall(probabilities, targets, recall, meant))
    if precision is not None:
        rule = replace(rule, thresholds=_thresholds_for_precision(rule, probabilities, targets, precision, meant))
    return _measure(rule, probabilities, targets)


def _costs_for_recall(probabilities: Floats, targets: Rows, recall: float, meant: Sequence[int]) -> Floats:
    """Raise the costs of missing classes until each has that recall, or no cost helps: (classes, classes)."""
    n = probabilities.shape[1]
    counts, weights = np.bincount(targets, minlength=n), np.ones(n)
    for _ in range(_TURNS):
        chosen = (probabilities * weights).argmax(1)
        right = np.bincount(targets[chosen == targets], minlength=n)
        low = [k for k in meant if counts[k] and right[k] < recall * counts[k]]
        if not low:
            break
        weights[low] *= _STEP
        weights /= weights.min()
    return np.asarray(weights[:, None] * (1 - np.eye(n)))


def _thresholds_for_precision(
    rule: Labels, probabilities: Floats, targets: Rows, precision: float, meant: Sequence[int]
) -> Floats:
    """Return the lowest threshold of each class at which its decisions have the precision, or 1: (classes,)."""
    chosen, thresholds = rule.choose(probabilities), np.zeros(len(rule))
    for k in meant:
        own = np.flatnonzero(chosen == k)
        own = own[np.argsort(-probabilities[own, k], kind="stable")]
        p, right = probabilities[own, k], targets[own] == k
        share = np.cumsum(right) / np.arange(1, len(own) + 1)
        whole = np.append(p[1:] < p[:-1], True)  # documents with the same probability are decided together
        good = np.flatnonzero((share >= precision) & whole) if len(own) else np.zeros(0, np.int64)
        if not len(good):
            thresholds[k] = 1.0
        elif good[-1] < len(own) - 1:  # otherwise all decisions for it are accepted
            thresholds[k] = p[good[-1]]
    return thresholds


def _measure(rule: Labels, probabilities: Floats, targets: Rows) -> Decisions:
    chosen, n = rule.choose(probabilities), len(rule)
    decided = chosen >= 0
    thresholds = np.zeros(n) if rule.thresholds is None else rule.thresholds
    missing = np.ones(n) if rule.costs is None else rule.costs[:, :n].max(1)
    least = missing[missing > 0].min(initial=np.inf)
    classes = []
    for k, name in enumerate(rule.classes.tolist()):
        own, true = chosen == k, targets == k
        both = int((own & true).sum())
        cost = float(missing[k] / least) if np.isfinite(least) else 1.0
        shares = wilson(both, int(own.sum())), wilson(both, int(true.sum()))
        classes.append(ClassDecisions(name, float(thresholds[k]), cost, int(own.sum()), *shares))
    right = int((chosen == targets).sum())
    coverage = wilson(int(decided.sum()), len(targets))
    return Decisions(rule, coverage, wilson(right, int(decided.sum())), classes)


def read_costs(content: str, classes: Sequence[Any]) -> Floats:
    """Read a cost matrix from CSV: a row per true class, a column per decided class, perhaps a column "undecided".

    The first row holds the names of the columns, the first column those of the rows.
    """
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(content)) if any(row)]
    names = [str(name) for name in classes]
    if not rows or not rows[0]:
        raise InputError("the cost matrix is empty")
    heads, by_name = rows[0][1:], {row[0]: row[1:] for row in rows[1:]}
    columns = [*names, UNDECIDED] if UNDECIDED in heads and UNDECIDED not in names else names
    missing = [name for name in columns if name not in heads] + [name for name in names if name not in by_name]
    if missing:
        raise InputError(
            f"the cost matrix has no row or column '{missing[0]}': it needs one per class, {', '.join(names)}"
        )
    try:
        matrix = np.array([[float(by_name[row][heads.index(name)]) for name in columns] for row in names])
    except (ValueError, IndexError):
        raise InputError("the cost matrix holds a cell that is not a number, or a row that is too short") from None
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise InputError("costs must be numbers from 0")
    return matrix
