"""Find documents whose label is probably wrong.

Every document is predicted by a model that was not trained on it. A label is suspicious if another class is more
probable than is usual for documents of that class: its probability reaches the mean probability that documents labeled
so have of it, the threshold of confident learning (Northcutt et al., 2021). The rank is the difference of the log
probabilities of the other class and of the label.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.data.inputs import as_examples
from mpad.data.labels import learn_labels
from mpad.errors import InputError
from mpad.estimator.classifier import MPADClassifier
from mpad.evaluate.neighbors import has_encoder
from mpad.evaluate.out_of_fold import FOLDS, OutOfFold, predict_out_of_fold
from mpad.explain import explain
from mpad.text.printable import printable

_TINY = 1e-12
_MOST_WORDS = 4  # words behind a suggestion
_MOST_EXPLAINED = 500  # suggestions whose words a table has: an explanation takes a tenth of a second


@dataclass(frozen=True)
class LabelError:
    """A document whose label is probably wrong, and the label that it should probably have."""

    row: int  # position among the documents, from 0
    text: str
    label: Any
    suggested: Any
    probability: float  # of the label
    suggested_probability: float
    model: Any  # the classifier that was not trained on this document

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words that most support the suggested label; none if the model has no explanations."""
        network = getattr(self.model, "model_", None)
        if network is None or network.kind != "mpad":
            return ()
        found = explain(network, self.text, self.suggested).keywords(_MOST_WORDS)
        return tuple(keyword.text for keyword in found)


@dataclass(frozen=True)
class LabelErrors:
    """Suspicious labels, the most suspicious first, and the predictions that they were found by."""

    errors: list[LabelError]
    predictions: OutOfFold

    def __len__(self) -> int:
        return len(self.errors)

    def __getitem__(self, place: int) -> LabelError:
        return self.errors[place]

    def table(self, ids: Sequence[str] | None = None) -> tuple[list[str], list[list[Any]]]:
        """Return column names and a row per suspicious document; `label` is the suggested one, as `fit --add` reads.

        The first 500 rows have the words behind the suggestion.

        Parameters
        ----------
        ids : sequence of str, optional
            Names of the documents, by default their numbers from 1.

        Returns
        -------
        columns : list of str
        rows : list of list

        """
        columns = ["id", "text", "label", "old_label", "probability", "old_probability", "words"]
        rows = [
            [
                str(one.row + 1) if ids is None else ids[one.row],
                one.text,
                one.suggested,
                one.label,
                round(one.suggested_probability, 4),
                round(one.probability, 4),
                " ".join(map(printable, one.words)) if place < _MOST_EXPLAINED else "",
            ]
            for place, one in enumerate(self.errors)
        ]
        return columns, rows


def find_label_errors(
    texts: Iterable[str],
    labels: Any,
    *,
    classifier: Any = None,
    folds: int = FOLDS,
    done: Callable[[], None] = lambda: None,
) -> LabelErrors:
    """Find documents whose label is probably wrong.

    Parameters
    ----------
    texts : iterable of str
        Documents.
    labels : array-like
        A label per document.
    classifier : estimator, optional
        Unfitted classifier with `predict_proba`; by default `MPADClassifier` with its encoder as it is
        (`max_epochs=0`), which is fast and memorizes few wrong labels.
    folds : int, default=3
        Number of folds of the cross-validation.
    done : callable, optional
        Called after each fold.

    Returns
    -------
    LabelErrors
        A sequence of `LabelError`, the most suspicious first.

    Examples
    --------
    >>> from mpad.evaluate import find_label_errors
    >>> for error in find_label_errors(texts, labels)[:10]:                         # doctest: +SKIP
    ...     print(error.label, "→", error.suggested, error.words, error.text)

    """
    texts, y = as_examples(texts, labels)
    known = learn_labels(y)
    if known.multilabel:
        raise InputError("label errors are found in data with one label per document, not in multi-label data")
    classifier = default_classifier(texts) if classifier is None else classifier
    return rank_label_errors(predict_out_of_fold(classifier, texts, known, known.encode(y), folds, done))


def default_classifier(texts: Sequence[str]) -> MPADClassifier:
    """Return the classifier that finds label errors: with the encoder as it is, where there is one for these texts."""
    return MPADClassifier(random_state=0, verbose=False, max_epochs=0 if has_encoder(texts) else "auto")


def rank_label_errors(predictions: OutOfFold) -> LabelErrors:
    """Return the documents whose label is suspicious by these predictions, the most suspicious first."""
    suspicious, other = suspicious_labels(predictions.probabilities, predictions.targets)
    log_p, every = np.log(predictions.probabilities + _TINY), np.arange(len(other))
    lead = log_p[every, other] - log_p[every, predictions.targets]
    rows = np.flatnonzero(suspicious)
    rows = rows[np.argsort(-lead[rows], kind="stable")]
    classes = predictions.labels.classes.tolist()
    errors = [
        LabelError(
            row,
            predictions.texts[row],
            classes[predictions.targets[row]],
            classes[other[row]],
            float(predictions.probabilities[row, predictions.targets[row]]),
            float(predictions.probabilities[row, other[row]]),
            predictions.models[predictions.fold[row]],
        )
        for row in rows.tolist()
    ]
    return LabelErrors(errors, predictions)


def suspicious_labels(
    probabilities: NDArray[np.float64], targets: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which documents have a suspicious label, and the most probable other class of each: (documents,) each."""
    every, n_classes = np.arange(len(targets)), probabilities.shape[1]
    own = probabilities[every, targets]
    counts = np.bincount(targets, minlength=n_classes)
    usual = np.bincount(targets, own, minlength=n_classes) / np.maximum(counts, 1)
    usual[counts == 0] = 1.0
    others = probabilities.copy()
    others[every, targets] = -1.0
    other = others.argmax(1)
    return np.asarray((others[every, other] >= usual[other]) & (others[every, other] > own)), np.asarray(other)
