"""Out-of-fold predictions: the probabilities of each document by a model that was not trained on it or its copies."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mpad.data.equal_texts import text_groups
from mpad.data.labels import Labels
from mpad.errors import DataWarning, InputError
from mpad.evaluate.cross_validation import shuffled_folds

Rows = NDArray[np.int64]
FOLDS = 3


@dataclass(frozen=True)
class OutOfFold:
    """Documents with their labels, and their probabilities by models that had not seen them."""

    texts: Sequence[str]
    labels: Labels
    targets: Rows  # (documents,) number of the label of each
    probabilities: NDArray[np.float64]  # (documents, classes)
    models: list[Any]  # a fitted classifier per fold
    fold: Rows  # (documents,) number of the model that had not seen it

    @property
    def predicted(self) -> Rows:
        """Number of the most probable class: (documents,)."""
        return np.asarray(self.probabilities.argmax(1))

    @property
    def right(self) -> NDArray[np.bool_]:
        """Documents whose label is the most probable class: (documents,)."""
        return np.asarray(self.predicted == self.targets)


def predict_out_of_fold(
    classifier: Any,
    texts: Sequence[str],
    labels: Labels,
    targets: Rows,
    folds: int = FOLDS,
    done: Callable[[], None] = lambda: None,
) -> OutOfFold:
    """Predict each document by a model that is trained on the other folds.

    Parameters
    ----------
    classifier : estimator
        An unfitted classifier with `predict_proba`, cloned for each fold.
    texts : sequence of str
        Documents.
    labels, targets
        The classes, and the class number of each document.
    folds : int, default=3
        Number of folds. Classes are spread evenly; equal texts share a fold.
    done : callable, optional
        Called after each fold.

    Returns
    -------
    OutOfFold

    """
    if folds < 2:
        raise InputError(f"folds must be at least 2, not {folds}")
    counts = np.bincount(targets, minlength=len(labels))
    rare = labels.classes[counts < 2]
    if len(rare):
        raise InputError(f"class '{rare[0]}' has one document: cross-validation needs at least two of each class")
    groups = text_groups(texts)
    probabilities = np.zeros((len(texts), len(labels)))
    fold, models = np.zeros(len(texts), np.int64), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # problems of the data are reported once, by the caller
        warnings.filterwarnings("ignore", message="The least populated class")
        for number, (training, tested) in enumerate(shuffled_folds(folds, texts, targets, 0, groups)):
            model = clone(classifier).fit([texts[row] for row in training], labels.classes[targets[training]])
            known = np.searchsorted(labels.classes, model.classes_)
            probabilities[np.ix_(tested, known)] = model.predict_proba([texts[row] for row in tested])
            fold[tested] = number
            models.append(model)
            done()
    return OutOfFold(texts, labels, targets, probabilities, models, fold)
