"""A whole cross-validation at once: every fold of every setting trains in one stacked model."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator, GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from mpad.data.equal_texts import text_groups
from mpad.data.inputs import as_examples, as_seed
from mpad.data.inspection import warn_of_labels
from mpad.data.labels import label_names, learn_labels
from mpad.errors import InputError
from mpad.estimator.text_classifier import Split, TextClassifier, TrainingData, make_tasks, untrained_model
from mpad.evaluate.label_scores import LabelScores
from mpad.pipeline.text_model import TextModel
from mpad.training.device import find_device
from mpad.training.engine import evaluate
from mpad.training.examples import Examples
from mpad.training.loop import train_in_turn
from mpad.training.progress import EpochReport, Sink, silent
from mpad.training.task import Task

Rows = NDArray[np.int64]
Fold = tuple[Rows, Rows | None, Rows]  # training rows, those that choose the epoch where they are given, test rows
Folds: TypeAlias = int | BaseCrossValidator | Iterable[tuple[Any, ...]]
_FREE = {"random_state", "learning_rate", "dropout", "patience", "class_weight", "verbose"}


@dataclass(frozen=True)
class FoldResult:
    """What one fold of one setting came to. The epoch was chosen by the validation documents alone."""

    setting: int  # place among the estimators given
    fold: int
    estimator: TextClassifier  # fitted on the fold
    validation_accuracy: float  # of many labels a document, the share of right cells of documents and labels
    test_accuracy: float
    test_f1: tuple[float, float] | None  # micro and macro, of many labels a document; None of one
    best_epoch: int
    seconds: float  # of training, of all models that trained together
    together: int  # how many that were
    reports: tuple[EpochReport, ...]  # one an epoch; `watched_accuracy` is the test documents'
    test: NDArray[np.int64]  # the fold's test documents, by their place in X


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
    """Train and test every estimator on every fold, all at the same time where that is faster.

    `estimators`, one or several, may differ in their random state, learning rate, dropout, patience and class
    weights; the rest is one architecture. `cv` is a number of folds, stratified where
    a document has one label, a scikit-learn splitter, or pairs of
    training and test rows; of each training part a share is then held out to choose the epoch. Triples of training,
    validation and test rows say which documents choose it. Test accuracy is reported every epoch; with `watch=False`
    it is measured once, of the epoch that was chosen, which is faster where the test part is large.

    Equal texts (apart from case and white space) stay on one side of every split made here: between training and test
    documents, unless `cv` says which those are, and between training and held-out documents. `group_copies=False`
    splits them like any others, as the paper does.

    The vocabulary is that of all of X, as in the paper: words carry no labels, and a word that only test documents
    have keeps its pretrained, or an untrained random, vector. With `vectors="corpus"` vectors are learnt from the
    documents that no fold tests on, or from all where each is tested once.
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
    """The same, each result as soon as it is there: all at once where all train together, else one by one."""
    settings = [estimators] if isinstance(estimators, TextClassifier) else list(estimators)
    _check_alike(settings)
    names = label_names(y)
    texts, truth = as_examples(X, y)
    labels = learn_labels(truth, names)
    warn_of_labels(labels, truth)
    targets, ones = labels.encode(truth), np.ones(len(texts), np.float32)
    seeds = [as_seed(setting.random_state) for setting in settings]
    groups = text_groups(texts) if group_copies else None
    folds = _folds(cv, texts, targets, seeds[0], groups)
    shared, packed = untrained_model(settings[0], texts, labels, seeds[0], vectors_from=never_tested(len(texts), folds))
    device = find_device(settings[0].device)
    corpus = shared.tensors(packed, device)
    runs = [
        _Run(number, fold, *_tasks(setting, seed, shared, TrainingData(packed, corpus, targets, ones, groups), rows))
        for number, (setting, seed) in enumerate(zip(settings, seeds, strict=True))
        for fold, rows in enumerate(folds)
    ]
    tasks = [task if watch else replace(task, watched=None) for run in runs for task in run.tasks]
    trained = train_in_turn(tasks, sink)
    for run in runs:
        histories = list(islice(trained, len(run.tasks)))
        history, (setting, fold) = histories[0], (run.setting, run.fold)
        best = history.reports[history.best_epoch - 1]
        estimator = clone(settings[setting])
        model, fitted = estimator._complete(
            shared, run.data, run.tasks, seeds[setting], train_on_held=folds[fold][1] is None
        )
        estimator._remember(model, fitted, histories)
        if len(run.tasks) > 1 or fitted.potentials is not None:
            test_accuracy = model.accuracy(packed, targets, folds[fold][2])
        else:
            test_accuracy = best.watched_accuracy if watch else evaluate(model.network, _watched(run.tasks[0]))[1]
        yield FoldResult(
            setting=setting,
            fold=fold,
            estimator=estimator,
            validation_accuracy=estimator.held_out_accuracy_.get("mpad", best.validation_accuracy),
            test_accuracy=float(test_accuracy or 0.0),
            test_f1=_test_f1(model, packed, targets, folds[fold][2]) if labels.multilabel else None,
            best_epoch=history.best_epoch,
            seconds=history.seconds if history.together > 1 else sum(each.seconds for each in histories),
            together=history.together,
            reports=tuple(history.reports),
            test=folds[fold][2],
        )


@dataclass(frozen=True)
class _Run:
    """One fold of one setting: its data, and a task for each of its networks."""

    setting: int
    fold: int
    data: TrainingData
    tasks: list[Task]


def _test_f1(model: TextModel, packed: Any, targets: NDArray[Any], test: Rows) -> tuple[float, float]:
    given = model.labels.decide(model.answer(packed).logits[test]) > 0
    scores = LabelScores([str(name) for name in model.labels.classes], targets[test] > 0.5, given)
    return scores.micro_f1.value, scores.macro_f1.value


def _watched(task: Task) -> Examples:
    assert task.watched is not None
    return task.watched


def never_tested(n: int, folds: Sequence[Fold]) -> Rows:
    """Rows that no fold tests on: word vectors are learnt from these. Where every row is tested once, all rows."""
    tested = np.zeros(n, bool)
    for _, _, test in folds:
        tested[test] = True
    return np.flatnonzero(~tested) if not tested.all() else np.arange(n)


def _tasks(
    setting: TextClassifier, seed: int, model: TextModel, data: TrainingData, fold: Fold
) -> tuple[TrainingData, list[Task]]:
    """One fold of one setting: its own networks over the shared corpus and vectors."""
    chosen, held, test = fold
    weights = data.weights.copy()
    weights[chosen] = model.labels.weights(setting.class_weight, data.targets[chosen])
    weighed = replace(data, weights=weights)
    return weighed, make_tasks(setting, model, weighed, Split(chosen, held, test), seed)


def _check_alike(settings: Sequence[TextClassifier]) -> None:
    if not settings:
        raise InputError("expected an estimator or several, found none")
    first = settings[0].get_params(deep=False)
    for setting in settings[1:]:
        other = setting.get_params(deep=False)
        differing = sorted(name for name in first if first[name] != other[name] and name not in _FREE)
        if differing:
            raise InputError(
                f"estimators that train together may differ in {', '.join(sorted(_FREE))}; these differ in "
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


def _folds(cv: Folds, texts: Sequence[str], y: NDArray[Any], seed: int, groups: Rows | None) -> list[Fold]:
    if isinstance(cv, int):
        if cv < 2:
            raise InputError(f"cv must be at least 2 folds, not {cv}")
        cv = shuffled_folds(cv, texts, y, seed, groups)
    folds: list[Fold] = []
    for number, parts in enumerate(cv.split(texts, y) if hasattr(cv, "split") else cv):
        if len(parts) not in (2, 3):
            raise InputError(f"fold {number}: expected (training, test) or (training, validation, test) rows")
        training, *held, test = (_rows(part, len(texts), number) for part in parts)
        folds.append((training, held[0] if held else None, test))
    return folds


def _rows(part: Any, n: int, fold: int) -> Rows:
    """Row numbers, or a mask as long as the documents, as row numbers."""
    rows = np.asarray(part)
    if rows.dtype == bool and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows) or rows.min() < 0 or rows.max() >= n:
        raise InputError(f"fold {fold}: expected row numbers from 0 to {n - 1}, at least one in every part")
    return rows.astype(np.int64)
