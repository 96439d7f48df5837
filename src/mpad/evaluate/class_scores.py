"""Scores of a model on labeled documents: single-label data here, multi-label data in `label_scores`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix,
    precision_recall_fscore_support,
    roc_auc_score,
)

from mpad.errors import InputError
from mpad.estimator.decisions import UNDECIDED
from mpad.estimator.held_out_scores import Share, wilson
from mpad.evaluate.calibration import Calibration
from mpad.evaluate.label_scores import LabelScores, score_labels

Chunks = Iterable[tuple[Sequence[str], Sequence[Any]]]  # texts and labels


@dataclass(frozen=True)
class ClassScores:
    """True and predicted labels of documents, and their scores."""

    known: list[str]  # classes of the model
    truth: list[str]
    predicted: list[str]
    probabilities: NDArray[np.float64] | None = None  # (documents, known classes), if the model has any
    temperature: float | None = None  # if one was fitted

    @cached_property
    def confidence(self) -> NDArray[np.float64] | None:
        """Probability of the most probable class: (documents,)."""
        return None if self.probabilities is None else np.asarray(self.probabilities.max(1))

    @cached_property
    def unscaled(self) -> NDArray[np.float64] | None:
        """Confidence before temperature scaling; None if there was none: (documents,)."""
        if self.probabilities is None or self.temperature is None:
            return None
        raised = self.probabilities**self.temperature  # logits are logarithms of these, up to a constant per document
        return np.asarray((raised / raised.sum(1, keepdims=True)).max(1))

    @property
    def decided(self) -> NDArray[np.bool_]:
        """Documents that the model decides; a model with thresholds or costs may leave some undecided: (documents,)."""
        return np.array([name != UNDECIDED or UNDECIDED in self.known for name in self.predicted], bool)

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the classes that have documents."""
        return self.macro[1]

    @cached_property
    def ranking(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Area under the ROC curve and average precision of each known class against the others; NaN: one is missing.

        None if the model has no probabilities.
        """
        if self.probabilities is None:
            return None
        scores = np.full((2, len(self.known)), np.nan)
        for name, (own, column) in self.ranked().items():
            scores[:, self.known.index(name)] = roc_auc_score(own, column), average_precision_score(own, column)
        return scores[0], scores[1]

    def ranked(self) -> dict[str, tuple[NDArray[np.bool_], NDArray[np.float64]]]:
        """Return, for each class with documents in and outside it, which have it and their probability of it."""
        if self.probabilities is None:
            return {}
        truth = np.array(self.truth)
        pairs = {name: (truth == name, self.probabilities[:, k]) for k, name in enumerate(self.known)}
        return {name: pair for name, pair in pairs.items() if 0 < pair[0].sum() < len(truth)}

    @cached_property
    def unknown(self) -> list[str]:
        """Labels that the model does not know; all their documents count as mistakes."""
        return sorted(set(self.truth) - set(self.known))

    @property
    def classes(self) -> list[str]:
        """Classes of the model, then labels that it does not know."""
        return [*self.known, *self.unknown]

    @cached_property
    def matrix(self) -> NDArray[np.int64]:
        """Confusion matrix: rows are true, columns predicted classes; undecided documents are left out."""
        return np.asarray(confusion_matrix(self.truth, self.predicted, labels=self.classes))

    @cached_property
    def per_class(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Precision, recall, F1 and number of documents of each class."""
        precision, recall, f1, support = precision_recall_fscore_support(
            self.truth, self.predicted, labels=self.classes, zero_division=0.0
        )
        return precision, recall, f1, support

    @property
    def macro(self) -> tuple[float, float, float]:
        """Mean precision, recall and F1 over the classes that have documents."""
        *scores, support = self.per_class
        precision, recall, f1 = (float(np.mean(score[support > 0])) for score in scores)
        return precision, recall, f1

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """Correct predictions: (documents,)."""
        return np.array([own == other for own, other in zip(self.truth, self.predicted, strict=True)], bool)

    @property
    def accuracy(self) -> Share:
        """Share of correct documents, with its 95 % interval."""
        return wilson(int(self.right.sum()), len(self.right))

    @property
    def majority(self) -> tuple[str, float]:
        """Most frequent class and its share."""
        support = self.per_class[3]
        most = int(support.argmax())
        return self.classes[most], float(support[most] / len(self.truth))

    def calibration(self, unscaled: bool = False) -> Calibration | None:
        """Return the calibration, optionally before temperature scaling; None if there are no probabilities."""
        confidence = self.unscaled if unscaled else self.confidence
        return None if confidence is None else Calibration(confidence, self.right)

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Return column names and a row per class, then one named (all) with macro-averages and the accuracy."""
        columns = ["class", "precision", "recall", "f1", "documents", "roc_auc", "average_precision", "accuracy"]
        scores = zip(self.classes, *(values.tolist() for values in self.per_class), strict=True)
        empty = [None] * len(self.classes)
        auc, ap = (empty, empty) if self.ranking is None else (self._padded(values) for values in self.ranking)
        averages = ["(all)", *self.macro, len(self.truth), _mean(auc), _mean(ap), self.accuracy.value]
        rows = [[*row, one, other, None] for row, one, other in zip(scores, auc, ap, strict=True)]
        return columns, [*rows, averages]

    def _padded(self, values: NDArray[np.float64]) -> list[float | None]:
        """Return values of the known classes, None for missing ones and for the unknown classes."""
        return [None if np.isnan(value) else value for value in values.tolist()] + [None] * len(self.unknown)

    def mistakes(self, texts: Sequence[str], ids: Sequence[str] | None = None) -> tuple[list[str], list[list[Any]]]:
        """Return column names and a row per mistake, the most confident first.

        Parameters
        ----------
        texts : sequence of str
            The documents.
        ids : sequence of str, optional
            Their names, by default their numbers from 1.

        Returns
        -------
        columns : list of str
        rows : list of list

        """
        rows = np.flatnonzero(~self.right)
        if self.confidence is not None:
            rows = rows[np.argsort(-self.confidence[rows], kind="stable")]
        sure = [None] * len(texts) if self.confidence is None else self.confidence.round(4).tolist()
        names = [str(k + 1) for k in range(len(texts))] if ids is None else ids
        return ["id", "text", "label", "predicted", "probability"], [
            [names[k], texts[k], self.truth[k], self.predicted[k], sure[k]] for k in rows.tolist()
        ]

    def lines(self) -> list[str]:
        """Describe accuracy, macro-F1, the share of the most frequent class, ranking and calibration."""
        accuracy, calibration, (name, share) = self.accuracy, self.calibration(), self.majority
        between = f"95 % interval {accuracy.low:.4f} to {accuracy.high:.4f}"
        lines = [
            f"accuracy  {accuracy.value:.4f} ({between}, {len(self.truth):,} documents)",
            f"balanced accuracy  {self.balanced_accuracy:.4f}, macro-F1  {self.macro[2]:.4f}",
            f'always "{name}"  {share:.4f}',
        ]
        if not self.decided.all():
            right, n = int(self.right.sum()), int(self.decided.sum())
            lines.append(
                f"decided  {n / len(self.truth):.4f} of the documents; accuracy of these  {right / max(n, 1):.4f}"
            )
        if self.ranking is not None:
            auc, ap = (_mean(self._padded(values)) for values in self.ranking)
            if auc is not None and ap is not None:
                lines.append(f"area under the ROC curve  {auc:.4f}, average precision  {ap:.4f} (mean of the classes)")
        if calibration is None:
            return lines
        shares, accuracies = calibration.coverage()
        unscaled, half = self.calibration(unscaled=True), accuracies[np.abs(shares - 0.5).argmin()]
        before = "" if unscaled is None else f"; before its temperature of {self.temperature:.2f}, {unscaled.error:.4f}"
        lines.append(f"expected calibration error  {calibration.error:.4f}{before}")
        return [*lines, f"accuracy of the most confident half  {half:.4f}"]


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return float(np.mean(present)) if present else None


def evaluate(model: Any, texts: Iterable[str], labels: Iterable[Any]) -> ClassScores | LabelScores:
    """Evaluate a fitted model on labeled documents.

    Parameters
    ----------
    model : estimator
        An `MPADClassifier` or a fitted baseline.
    texts : iterable of str
        The documents.
    labels : iterable
        A label per document, or a list of labels each if the model is multi-label.

    Returns
    -------
    ClassScores or LabelScores
        Accuracy with its interval, macro-F1, scores per class, confusion matrix and calibration; for a multi-label
        model, scores per label, micro-F1 and macro-F1.

    Examples
    --------
    >>> from mpad.evaluate import evaluate
    >>> scores = evaluate(model, texts, labels)             # doctest: +SKIP
    >>> scores.accuracy.value, scores.macro                 # doctest: +SKIP

    """
    return evaluate_chunks(model, [(list(texts), list(labels))])


def evaluate_chunks(model: Any, chunks: Chunks) -> ClassScores | LabelScores:
    """Evaluate a fitted model on chunks of documents, which need not be in memory together."""
    return _score_multilabel(model, chunks) if model.labels_.multilabel else _score_single_label(model, chunks)


def _score_multilabel(model: Any, chunks: Chunks) -> LabelScores:
    truth: list[Any] = []
    predictions = []
    for texts, labels in chunks:
        truth += labels
        predictions.append(model.predict(texts))
    return score_labels(model.labels_, truth, np.concatenate(predictions) > 0)


def _score_single_label(model: Any, chunks: Chunks) -> ClassScores:
    known = [str(name) for name in model.classes_]
    temperature = getattr(model, "card_", {}).get("temperature")
    fitted = isinstance(temperature, float) and 0 < temperature < float("inf")
    truth: list[str] = []
    predicted: list[str] = []
    every = []
    for texts, labels in chunks:
        if any(isinstance(label, list) for label in labels):
            raise InputError("the model gives one label per document, but these have lists of labels")
        truth += [str(label) for label in labels]
        if not hasattr(model, "predict_proba"):
            predicted += [str(name) for name in model.predict(texts)]
            continue
        probabilities = model.predict_proba(texts)
        predicted += [known[column] if column >= 0 else UNDECIDED for column in model.labels_.choose(probabilities)]
        every.append(probabilities)
    joined = np.concatenate(every) if every else None
    return ClassScores(known, truth, predicted, joined, temperature if fitted else None)
