"""A whole cross-validation at once: every fold of every setting trains in one stacked model."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold
from torch import Tensor

from mpad.errors import InputError
from mpad.estimators.text_classifier import TextClassifier
from mpad.inputs import as_examples, as_seed
from mpad.inspection import warn_of_labels
from mpad.labels import Labels, learn_labels
from mpad.text.vectors import random_rows
from mpad.training.device import find_device
from mpad.training.engine import evaluate
from mpad.training.examples import Corpus, Examples, make_examples
from mpad.training.holdout import hold_out
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
    validation_accuracy: float
    test_accuracy: float
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
    sink: Sink = silent,
) -> list[FoldResult]:
    """Train and test every estimator on every fold, all at the same time where that is faster.

    `estimators`, one or several, may differ in their random state, learning rate, dropout, patience and class
    weights; the rest is one architecture. `cv` is a number of stratified folds, a scikit-learn splitter, or pairs of
    training and test rows; of each training part a share is then held out to choose the epoch. Triples of training,
    validation and test rows say which documents choose it. Test accuracy is reported every epoch; with `watch=False`
    it is measured once, of the epoch that was chosen, which is faster where the test part is large.

    The vocabulary is that of all of X, as in the paper: words carry no labels, and a word that only test documents
    have keeps its pretrained, or an untrained random, vector. With `vectors="corpus"` vectors are learnt from the
    documents that no fold tests on, or from all where each is tested once.
    """
    return list(cross_validate_in_turn(estimators, X, y, cv=cv, watch=watch, sink=sink))


def cross_validate_in_turn(
    estimators: TextClassifier | Sequence[TextClassifier],
    X: Iterable[str],
    y: Any,
    *,
    cv: Folds = 10,
    watch: bool = True,
    sink: Sink = silent,
) -> Iterator[FoldResult]:
    """The same, each result as soon as it is there: all at once where all train together, else one by one."""
    settings = [estimators] if isinstance(estimators, TextClassifier) else list(estimators)
    _check_alike(settings)
    texts, truth = as_examples(X, y)
    labels = learn_labels(truth)
    warn_of_labels(labels, truth)
    targets = labels.encode(truth)
    seeds = [as_seed(setting.random_state) for setting in settings]
    folds = _folds(cv, texts, truth, seeds[0])
    shared, packed = settings[0]._build(texts, labels, seeds[0], never_tested(len(texts), folds))
    device = find_device(settings[0].device)
    corpus = shared.tensors(packed, device)
    vectors = shared.network.vectors.detach().to(device)
    tasks = [
        _task(setting, seed, corpus, targets, labels, vectors, fold)
        for setting, seed in zip(settings, seeds, strict=True)
        for fold in folds
    ]
    trained = train_in_turn(tasks if watch else [replace(task, watched=None) for task in tasks], sink)
    for number, (task, history) in enumerate(zip(tasks, trained, strict=True)):
        setting, fold = divmod(number, len(folds))
        best = history.reports[history.best_epoch - 1]
        estimator = clone(settings[setting])
        chosen, held = (_places(part) for part in (task.examples, task.validation))
        weights = np.ones(len(targets), np.float32)
        weights[chosen] = task.examples.weights.cpu().numpy()
        model = shared.with_network(task.network)
        whole, linear = estimator._complete(model, packed, targets, weights, chosen, held, seeds[setting])
        estimator._remember(whole, history, linear)
        if whole is not model:
            test_accuracy = whole.accuracy(packed, targets, folds[fold][2])
        else:
            test_accuracy = best.watched_accuracy if watch else evaluate(task.network, _watched(task))[1]
        yield FoldResult(
            setting=setting,
            fold=fold,
            estimator=estimator,
            validation_accuracy=estimator.held_out_accuracy_.get("mpad", best.validation_accuracy),
            test_accuracy=float(test_accuracy or 0.0),
            best_epoch=history.best_epoch,
            seconds=history.seconds,
            together=history.together,
            reports=tuple(history.reports),
            test=folds[fold][2],
        )


def _places(examples: Examples | None) -> Rows:
    """Documents of some examples."""
    return np.zeros(0, np.int64) if examples is None else examples.documents.cpu().numpy()


def _watched(task: Task) -> Examples:
    assert task.watched is not None
    return task.watched


def never_tested(n: int, folds: Sequence[Fold]) -> Rows:
    """Rows that no fold tests on: word vectors are learnt from these. Where every row is tested once, all rows."""
    tested = np.zeros(n, bool)
    for _, _, test in folds:
        tested[test] = True
    return np.flatnonzero(~tested) if not tested.all() else np.arange(n)


def _task(
    setting: TextClassifier,
    seed: int,
    corpus: Corpus,
    targets: NDArray[Any],
    labels: Labels,
    vectors: Tensor,
    fold: Fold,
) -> Task:
    """One fold of one setting: its own network over the shared corpus and vectors."""
    chosen, held, test = fold
    weights = np.ones(len(targets), np.float32)
    weights[chosen] = labels.weights(setting.class_weight, targets[chosen])
    if held is None:
        chosen, held = (chosen[part] for part in hold_out(targets[chosen], setting.validation_fraction, seed))
    network = setting._network(len(labels), vectors.shape[0], vectors.shape[1], seed).to(corpus.device)
    if setting._learns_vectors:  # learnt from scratch, each model from rows of its own
        vectors = torch.from_numpy(random_rows(vectors.shape[0], vectors.shape[1], seed)).to(corpus.device)
    network.set_vectors(vectors)
    return Task(
        network,
        make_examples(corpus, chosen, targets, weights),
        make_examples(corpus, held, targets) if len(held) else None,
        setting._training_config(seed, len(targets)),
        watched=make_examples(corpus, test, targets),
    )


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


def _folds(cv: Folds, texts: Sequence[str], y: NDArray[Any], seed: int) -> list[Fold]:
    if isinstance(cv, int):
        if cv < 2:
            raise InputError(f"cv must be at least 2 folds, not {cv}")
        cv = StratifiedKFold(cv, shuffle=True, random_state=seed)
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
