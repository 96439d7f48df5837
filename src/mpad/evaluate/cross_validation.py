"""Cross-validation; on a GPU all folds of all settings train at once, in one stacked model."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator, GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from mpad.data.equal_texts import text_groups
from mpad.data.inputs import as_examples, as_seed, label_names
from mpad.data.inspection import warn_of_labels
from mpad.data.labels import learn_labels, rightness
from mpad.errors import InputError
from mpad.estimator.classifier import Split, TextClassifier, TrainingData, make_tasks, untrained_model
from mpad.evaluate.label_scores import LabelScores
from mpad.inference.pipeline import Pipeline
from mpad.network import find_device, to_device
from mpad.training.engine import evaluate
from mpad.training.loop import train_in_turn
from mpad.training.progress import EpochReport, Sink, silent
from mpad.training.task import make_examples

Rows = NDArray[np.int64]
Fold = tuple[Rows, Rows | None, Rows]  # training rows, validation rows or None, test rows
Folds: TypeAlias = int | BaseCrossValidator | Iterable[tuple[Any, ...]]
_MAY_DIFFER = {"random_state", "learning_rate", "dropout", "patience", "class_weight", "verbose"}


@dataclass(frozen=True)
class FoldResult:
    """Result of one fold of one setting; the epoch was chosen on validation documents only."""

    setting: int  # index of the estimator
    fold: int
    estimator: TextClassifier  # fitted on the fold
    validation_accuracy: float  # multi-label: share of right cells of documents and labels
    test_accuracy: float
    test_f1: tuple[float, float] | None  # micro and macro; None for single-label data
    best_epoch: int
    seconds: float  # training time of all models that trained together
    together: int  # number of these models
    reports: tuple[EpochReport, ...]  # one per epoch; `watched_accuracy` is the test accuracy
    test: NDArray[np.int64]  # rows of X


def cross_validate(
    estimators: TextClassifier | Sequence[TextClassifier],
    X: Iterable[str],
    y: Any,
    *,
    cv: Folds = 10,
    watch: bool = True,
    group_copies: bool = True,
    sink: Sink = silent,
) -> list[FoldResult]:
    """Train and test every estimator on every fold; on a GPU, all at the same time.

    Parameters
    ----------
    estimators : estimator or sequence of estimators
        They share one architecture, and may differ in `random_state`, `learning_rate`, `dropout`, `patience`,
        `class_weight` and `verbose`.
    X : iterable of str
        Documents.
    y : array-like
        A label per document; for multi-label data, a list of labels per document or an indicator matrix.
    cv : int, splitter or iterable of tuples, default=10
        Number of folds (stratified for single-label data), scikit-learn splitter, or pairs of training and test rows:
        a share of each training part is then held out to choose the epoch. Triples of training, validation and test
        rows choose it on the validation rows.
    watch : bool, default=True
        Measure test accuracy after every epoch; if False, only for the chosen epoch, which is faster.
    group_copies : bool, default=True
        Keep equal texts (ignoring case and white space) on one side of every split made here. The paper does not.
    sink : callable, optional
        Called with the report of each epoch.

    Returns
    -------
    list of FoldResult
        One per fold of each estimator.

    Notes
    -----
    The vocabulary is that of all of X, as in the paper: words carry no labels, and a word that occurs only in test
    documents keeps its pretrained, or an untrained random, vector. With `vectors="corpus"` vectors are learned from
    the documents that no fold tests on, or from all documents if each is tested once.

    """
    return list(cross_validate_in_turn(estimators, X, y, cv=cv, watch=watch, group_copies=group_copies, sink=sink))


def cross_validate_in_turn(
    estimators: TextClassifier | Sequence[TextClassifier],
    X: Iterable[str],
    y: Any,
    *,
    cv: Folds = 10,
    watch: bool = True,
    group_copies: bool = True,
    sink: Sink = silent,
) -> Iterator[FoldResult]:
    """Yield the results of `cross_validate` as soon as they are ready; all at once if all train together."""
    settings = [estimators] if isinstance(estimators, TextClassifier) else list(estimators)
    _check_same_architecture(settings)
    names = label_names(y)
    texts, truth = as_examples(X, y)
    labels = learn_labels(truth, names)
    warn_of_labels(labels, truth)
    targets = labels.encode(truth)
    seeds = [as_seed(setting.random_state) for setting in settings]
    groups = text_groups(texts) if group_copies else None
    folds = _make_folds(cv, texts, targets, seeds[0], groups)
    shared, packed = untrained_model(settings[0], texts, labels, seeds[0], vectors_from=vector_rows(len(texts), folds))
    corpus = to_device(packed, find_device(settings[0].device))
    runs = []
    for number, (setting, seed) in enumerate(zip(settings, seeds, strict=True)):
        for fold, (training, held, test) in enumerate(folds):
            weights = np.ones(len(texts), np.float32)
            weights[training] = labels.weights(setting.class_weight, targets[training])
            data = TrainingData(packed, corpus, targets, weights, groups)
            split = Split(training, held, test if watch else None)
            runs.append((number, fold, data, make_tasks(setting, shared, data, split, seed)))
    trained = train_in_turn([task for *_, tasks in runs for task in tasks], sink)
    for number, fold, data, tasks in runs:
        histories = list(islice(trained, len(tasks)))
        history, (_, held, test) = histories[0], folds[fold]
        best = history.reports[history.best_epoch - 1]
        estimator = clone(settings[number])
        model, fitted = estimator._complete(shared, data, tasks, seeds[number], train_on_held=held is None)
        estimator._remember(model, fitted, histories)
        if len(tasks) > 1 or fitted.potentials is not None:
            accuracy: float | None = float(rightness(model.answer(packed).logits[test], targets[test]).mean())
        elif watch:
            accuracy = best.watched_accuracy
        else:
            accuracy = evaluate(model.network, make_examples(corpus, test, targets))[1]
        yield FoldResult(
            setting=number,
            fold=fold,
            estimator=estimator,
            validation_accuracy=estimator.held_out_accuracy_.get("mpad", best.validation_accuracy),
            test_accuracy=float(accuracy or 0.0),
            test_f1=_test_f1(model, packed, targets, test) if labels.multilabel else None,
            best_epoch=history.best_epoch,
            seconds=history.seconds if history.together > 1 else sum(each.seconds for each in histories),
            together=history.together,
            reports=tuple(history.reports),
            test=test,
        )


def _test_f1(model: Pipeline, packed: Any, targets: NDArray[Any], test: Rows) -> tuple[float, float]:
    predicted = model.labels.decide(model.answer(packed).logits[test]) > 0
    scores = LabelScores([str(name) for name in model.labels.classes], targets[test] > 0.5, predicted)
    return scores.micro_f1.value, scores.macro_f1.value


def vector_rows(n: int, folds: Sequence[Fold]) -> Rows:
    """Return the rows for learning word vectors: those that no fold tests on, or all rows if each is tested."""
    tested = np.zeros(n, bool)
    for _, _, test in folds:
        tested[test] = True
    return np.flatnonzero(~tested) if not tested.all() else np.arange(n)


def _check_same_architecture(settings: Sequence[TextClassifier]) -> None:
    if not settings:
        raise InputError("expected an estimator or several, found none")
    first = settings[0].get_params(deep=False)
    for setting in settings[1:]:
        other = setting.get_params(deep=False)
        differing = sorted(name for name in first if first[name] != other[name] and name not in _MAY_DIFFER)
        if differing:
            raise InputError(
                f"estimators that train together may differ in {', '.join(sorted(_MAY_DIFFER))}; these differ in "
                f"{', '.join(differing)} too: cross-validate them one by one"
            )


def shuffled_folds(
    n: int, texts: Sequence[str], targets: NDArray[Any], seed: int, groups: Rows | None = None
) -> list[tuple[Rows, Rows]]:
    """Cut folds with classes spread evenly (multi-label: at random) and documents of one group in one fold."""
    many = targets.ndim == 2
    if groups is None or len(np.unique(groups)) == len(groups):
        splitter: Any = (KFold if many else StratifiedKFold)(n, shuffle=True, random_state=seed)
        return list(splitter.split(texts, targets))
    if len(np.unique(groups)) < n:
        raise InputError(f"{n} folds need {n} different texts; there are {len(np.unique(groups))}")
    splitter = (GroupKFold if many else StratifiedGroupKFold)(n, shuffle=True, random_state=seed)
    return list(splitter.split(texts, targets, groups))


def _make_folds(cv: Folds, texts: Sequence[str], y: NDArray[Any], seed: int, groups: Rows | None) -> list[Fold]:
    if isinstance(cv, int):
        if cv < 2:
            raise InputError(f"cv must be at least 2 folds, not {cv}")
        cv = shuffled_folds(cv, texts, y, seed, groups)
    folds: list[Fold] = []
    for number, parts in enumerate(cv.split(texts, y) if hasattr(cv, "split") else cv):
        if len(parts) not in (2, 3):
            raise InputError(f"fold {number}: expected (training, test) or (training, validation, test) rows")
        training, *held, test = (_as_rows(part, len(texts), number) for part in parts)
        folds.append((training, held[0] if held else None, test))
    return folds


def _as_rows(part: Any, n: int, fold: int) -> Rows:
    """Return row numbers from row numbers or a boolean mask."""
    rows = np.asarray(part)
    if rows.dtype == bool and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows) or rows.min() < 0 or rows.max() >= n:
        raise InputError(f"fold {fold}: expected row numbers from 0 to {n - 1}, at least one in every part")
    return rows.astype(np.int64)
