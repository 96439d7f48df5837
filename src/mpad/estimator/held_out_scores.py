"""Scores of a fitted model on documents that it was not trained on, next to the baselines."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from mpad.data.labels import Labels
from mpad.errors import DataWarning, InputError
from mpad.registry import find

BASELINE, BASELINE_NAME = "tfidf-svm", "TF-IDF + linear SVM"
_FEW = 30  # documents whose score has an interval of 20 points and more
Rows = NDArray[np.int64]


class Share(NamedTuple):
    """A share of documents with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} % (95 % interval {100 * self.low:.1f} to {100 * self.high:.1f})"


_Z = 1.959964  # of a two-sided 95 % interval


def wilson(right: float, n: int) -> Share:
    """Return the share right / n with its Wilson score interval, which is sound for small n and near 0 and 1."""
    if not n:
        return Share(0.0, 0.0, 1.0)
    share, z2 = right / n, _Z * _Z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * (share * (1 - share) / n + z2 / (4 * n * n)) ** 0.5
    return Share(share, max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half)))


@dataclass(frozen=True)
class HeldOutScores:
    """Scores on held-out documents. Multi-label data has micro-F1, without an interval, in place of accuracy."""

    documents: int
    multilabel: bool
    accuracy: Share
    macro_f1: float
    baseline: float | None  # of TF-IDF + linear SVM, trained on the same documents; None if it cannot be trained
    majority: tuple[str, float] | None  # the most frequent class here and its share; None for multi-label data
    never_right: tuple[str, ...]  # classes with held-out documents, all of which are predicted wrongly
    baseline_name: str = BASELINE_NAME
    folds: int = 0  # of cross-validation; 0: the documents were held out

    def lines(self) -> list[str]:
        """Describe the scores for people, warnings included."""
        where, by = ("held-out ", "") if not self.folds else ("", f" by {self.folds}-fold cross-validation")
        svm = "" if self.baseline is None else f"{self.baseline_name} {100 * self.baseline:.1f} %"
        held = f"{self.documents:,} documents"
        if self.majority is None:
            micro, macro = self.accuracy.value, self.macro_f1
            score = f"{where}micro-F1{by} {100 * micro:.1f} % ({held}), macro-F1 {100 * macro:.1f} %"
            return [score, *([f"on the same documents: {svm}"] if svm else []), *self._warnings()]
        name, share = self.majority
        interval = f"95 % interval {100 * self.accuracy.low:.1f} to {100 * self.accuracy.high:.1f}"
        score = f"{where}accuracy{by} {100 * self.accuracy.value:.1f} % ({interval}; {held})"
        always = f'always "{name}" {100 * share:.1f} %'
        return [
            f"{score}, macro-F1 {100 * self.macro_f1:.1f} %",
            f"on the same documents: {', '.join(filter(None, (svm, always)))}",
            *self._warnings(),
        ]

    def _warnings(self) -> list[str]:
        lines = []
        if self.documents < _FEW:
            kind = "labeled" if self.folds else "held-out"
            lines.append(
                f"warning: {self.documents} {kind} documents are too few to trust this score; "
                "test the model on more labeled documents (mpad evaluate)"
            )
        if self.majority is not None and self.accuracy.low <= self.majority[1]:
            name, share = self.majority
            than = "not better" if self.accuracy.value <= share else "not clearly better"
            lines.append(f'warning: the model is {than} than always predicting "{name}"')
        if self.never_right:
            shown = ", ".join(f'"{name}"' for name in self.never_right[:5])
            more = f" and {len(self.never_right) - 5} more" if len(self.never_right) > 5 else ""
            lines.append(f"warning: no held-out document of {shown}{more} is predicted correctly")
        return lines


def score_held_out(
    labels: Labels,
    logits: NDArray[np.floating],
    targets: NDArray[Any],
    baseline: NDArray[Any] | None,
    groups: NDArray[Any] | None = None,
) -> HeldOutScores | None:
    """Score logits (n, classes), and the baseline's predictions, on n held-out documents; None if there are none.

    The interval is that of as many documents as there are different texts: copies add no evidence.
    """
    if not len(targets):
        return None
    names = [str(name) for name in labels.classes.tolist()]
    if labels.multilabel:
        predicted, truth = labels.decide(np.asarray(logits, np.float32)), np.asarray(targets > 0.5)

        def micro(given: NDArray[Any]) -> float:
            return float(f1_score(truth, given > 0.5, average="micro", zero_division=0.0))

        there = np.asarray(truth.any(0))
        each = f1_score(truth, predicted > 0.5, average=None, zero_division=0.0)
        value = micro(predicted)
        macro = float(each[there].mean()) if there.any() else 0.0
        never = tuple(names[k] for k in np.flatnonzero(there & (each == 0)).tolist())
        own = None if baseline is None else micro(baseline)
        return HeldOutScores(len(targets), True, Share(value, value, value), macro, own, None, never)
    predicted = logits.argmax(1)
    counts = np.bincount(targets, minlength=len(names))
    right = np.bincount(targets[predicted == targets], minlength=len(names))
    present = np.flatnonzero(counts)
    macro = float(f1_score(targets, predicted, labels=present, average="macro", zero_division=0.0))
    most = int(counts.argmax())
    never = tuple(names[k] for k in present.tolist() if not right[k])
    own = None if baseline is None else float((baseline == targets).mean())
    different = len(targets) if groups is None else len(np.unique(groups))
    accuracy = wilson(different * float(right.sum()) / len(targets), different)
    return HeldOutScores(len(targets), False, accuracy, macro, own, (names[most], counts[most] / len(targets)), never)


def baseline_predictions(
    texts: Sequence[str], targets: NDArray[Any], splits: Sequence[tuple[Rows, Rows]], held: Rows
) -> NDArray[Any] | None:
    """Predict held-out documents with the baseline, trained on the documents that the network was trained on.

    `splits` has (training, held-out) rows for each network; a document that several networks hold out gets the mean
    of their baselines' scores. None if there is nothing to train a baseline on.
    """
    total = np.zeros((len(texts), 1 + int(targets.max(initial=0)) if targets.ndim == 1 else targets.shape[1]))
    for training, tested in splits:
        svm = find(BASELINE).estimator_class()()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # the model's own fit has reported it
                svm.fit([texts[row] for row in training.tolist()], targets[training])
        except InputError:  # one class, or no word
            return None
        total[np.ix_(tested, svm.classes_)] += svm.class_scores([texts[row] for row in tested.tolist()])
        absent = np.setdiff1d(np.arange(total.shape[1]), svm.classes_)
        total[np.ix_(tested, absent)] -= np.inf
    return np.asarray(total[held] > 0) if targets.ndim == 2 else np.asarray(total[held].argmax(1))
