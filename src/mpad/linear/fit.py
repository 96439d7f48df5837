"""Fit the linear part of a model: potentials of words and word pairs, and the weight of each part of the model.

1. `ngram-svm`: a linear SVM over words, word pairs and character n-grams of words, weighted by TF-IDF. Its scores on
   its own training documents are overconfident, so each document is scored by an SVM that has not seen it (ten folds).
2. `ngram-stack`: a logistic regression on those scores and the mean of the word vectors.
3. Three positive weights of the SVM, the regression and the network, fitted on held-out documents that none of them has
   seen. They also calibrate the probabilities.
4. Documents held out of the training set by `fit` itself are then used to train the SVM and the regression again. The
   documents that a user passes as `validation` are not: only the three weights are fitted on them.

Neither is the baseline `tfidf-svm`, which has no character n-grams. Equal texts share a fold.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from mpad.data.equal_texts import one_per_group
from mpad.graph.packed import PackedGraphs
from mpad.linear.features import Doubles, Features, Rows
from mpad.linear.mixture import HeldOutFit, join_parts
from mpad.linear.potentials import Potentials, both_classes

LIBLINEAR = Lock()  # its random generator is global: concurrent fits would not be reproducible
_FOLDS, _FEWER_FOLDS, _MANY = 10, 5, 20_000  # folds; fewer for more than _MANY documents


@dataclass(frozen=True)
class Examples:
    """Inputs of the linear model, with targets and weights."""

    x: csr_matrix  # (documents, features), as `Known.matrix` gives them
    mean: Doubles  # (documents, width), centered and scaled
    targets: NDArray[Any]  # (documents,) class numbers, or (documents, classes) indicators
    weights: NDArray[np.float32]  # (documents,)
    n_classes: int
    groups: Rows | None = None  # (documents,), the same for equal texts

    @property
    def multilabel(self) -> bool:
        """True if a document has many labels."""
        return self.targets.ndim == 2


def fit_linear_part(
    graphs: PackedGraphs,
    documents: Rows,
    targets: NDArray[Any],
    weights: NDArray[np.float32],
    n_classes: int,
    words: Sequence[str],
    vectors: NDArray[np.floating],
    held: Rows,
    network_logits: NDArray[np.floating],
    seed: int,
    groups: Rows | None = None,
    train_on_held: bool = True,
) -> HeldOutFit:
    """Fit on some documents of a corpus, `documents`, and weigh the parts on the held-out ones.

    `targets`, `weights` and `groups` have a row for each of `documents`; equal texts have the same group. `held` are
    the places of held-out documents among them, `network_logits` the network's logits for these. Each of
    `words` gets a potential and has a row in `vectors` (without columns if the network learns them). With
    `train_on_held`, SVM and regression are also trained on held-out documents, after each has been scored by models
    that have not seen it; otherwise only the weights of the parts are.
    """
    everything = np.arange(len(documents))
    trained = everything if train_on_held else np.setdiff1d(everything, held)
    features = Features(graphs, documents, len(words), vectors, words, learn_from=trained)
    examples = Examples(features.x, features.mean, targets, weights, n_classes, groups)
    scores, svm = _cross_fitted_scores(examples, trained, seed)
    if train_on_held:
        stacked = held_out_stack(examples, scores, held)
        stack = Stack(examples, scores, everything)
    else:
        scores[held] = svm.scores(examples.x[held])
        stack = Stack(examples, scores, trained)
        stacked = stack.logits(examples, scores, held)
    joined = join_parts([scores[held], stacked, network_logits], targets[held])
    potentials = make_potentials(features, stack, joined.part_weights, svm.weight, svm.intercept)
    return HeldOutFit(joined.accuracies, joined.answers_by, potentials, joined.logits, part_weights=joined.part_weights)


def refit_linear_part(
    graphs: PackedGraphs,
    targets: NDArray[Any],
    weights: NDArray[np.float32],
    n_classes: int,
    words: Sequence[str],
    vectors: NDArray[np.floating],
    part_weights: Doubles,
    seed: int,
    groups: Rows | None = None,
) -> Potentials:
    """Fit on all documents of a corpus, given the weights of the parts."""
    everything = np.arange(len(graphs))
    features = Features(graphs, everything, len(words), vectors, words)
    examples = Examples(features.x, features.mean, targets, weights, n_classes, groups)
    scores, svm = _cross_fitted_scores(examples, everything, seed)
    return make_potentials(features, Stack(examples, scores, everything), part_weights, svm.weight, svm.intercept)


def fit_stack(
    graphs: PackedGraphs,
    targets: NDArray[Any],
    n_classes: int,
    n_words: int,
    vectors: NDArray[np.floating],
) -> Potentials:
    """Fit SVM and regression on all documents, without a network or character n-grams: the `linear-stack`."""
    everything, ones = np.arange(len(graphs)), np.ones(len(targets), np.float32)
    features = Features(graphs, everything, n_words, vectors)
    examples = Examples(features.x, features.mean, targets, ones, n_classes)
    scores, svm = _cross_fitted_scores(examples, everything, seed=0)
    stack = Stack(examples, scores, everything)
    return make_potentials(features, stack, np.array([0.0, 1.0, 0.0]), svm.weight, svm.intercept)


def make_potentials(
    features: Features, stack: "Stack", part_weights: Doubles, weight: Doubles, intercept: Doubles
) -> Potentials:
    """Join an SVM's weights (rows, features) and a regression into one linear part."""
    known, n_classes = features.known, len(stack.bias)
    from_mean = part_weights[1] * stack.from_mean / features.scale
    pairs = np.stack(np.divmod(known.keys, max(features.n_words, 1)), axis=1)
    return Potentials(
        pairs=pairs.astype(np.int32),
        idf=known.idf,
        idf_new=np.array(known.idf_new, np.float32),
        potential=known.merge_ngrams(weight).T.astype(np.float16),
        intercept=intercept.astype(np.float32),
        from_scores=(part_weights[0] * np.eye(n_classes) + part_weights[1] * stack.from_scores).astype(np.float32),
        from_mean=from_mean.astype(np.float32),
        bias=(part_weights[1] * stack.bias - from_mean @ features.center).astype(np.float32),
        network=np.array(part_weights[2], np.float32),
        vectors=features.vectors,
    )


class _SVM:
    """A linear SVM on some of the examples; for multi-label tasks, one per label."""

    def __init__(self, examples: Examples, rows: Rows) -> None:
        self._n_classes, width = examples.n_classes, examples.x.shape[1]
        x, targets, weights = examples.x[rows], examples.targets[rows], examples.weights[rows]
        binary = examples.n_classes == 2 and not examples.multilabel
        self.weight = np.zeros((1 if binary else examples.n_classes, width))
        self.intercept = np.full(len(self.weight), 0.0 if binary else -1.0)  # score of a class without examples
        if not examples.multilabel:
            present = np.unique(targets)
            if len(present) < 2:
                return
            fitted = _fit_svm(x, targets, weights)
            if binary:
                self.weight, self.intercept = fitted.coef_, fitted.intercept_
            elif len(present) == 2:
                self.weight[present] = np.concatenate([-fitted.coef_, fitted.coef_])
                self.intercept[present] = np.concatenate([-fitted.intercept_, fitted.intercept_])
            else:
                self.weight[present], self.intercept[present] = fitted.coef_, fitted.intercept_
            return
        for label in range(examples.n_classes):
            column = targets[:, label] > 0.5
            if column.any() and not column.all():
                fitted = _fit_svm(x, column, weights)
                self.weight[label], self.intercept[label] = fitted.coef_[0], fitted.intercept_[0]
            else:
                self.intercept[label] = 1.0 if column.all() else -1.0

    def scores(self, x: csr_matrix) -> Doubles:
        """Return the scores of each class: (documents, classes)."""
        scores = np.asarray(x @ self.weight.T + self.intercept)
        return both_classes(scores, self._n_classes)  # type: ignore[return-value]


def _fit_svm(x: csr_matrix, targets: NDArray[Any], weights: NDArray[np.float32]) -> LinearSVC:
    with LIBLINEAR:
        return LinearSVC(random_state=0).fit(x, targets, sample_weight=weights)


def _cross_fitted_scores(examples: Examples, rows: Rows, seed: int) -> tuple[Doubles, _SVM]:
    """Score each document by an SVM that has not seen its text, and fit one SVM on all documents.

    Scores are (documents, classes), zero for documents outside `rows`.
    """
    scores = np.zeros((len(examples.targets), examples.n_classes))
    groups = None if examples.groups is None else examples.groups[rows]
    fold = _assign_folds(examples.targets[rows], seed, groups)
    with _ignore_convergence():
        for number in range(int(fold.max(initial=-1)) + 1):
            tested = rows[fold == number]
            scores[tested] = _SVM(examples, rows[fold != number]).scores(examples.x[tested])
        return scores, _SVM(examples, rows)


def _assign_folds(targets: NDArray[Any], seed: int, groups: Rows | None = None) -> Rows:
    """Assign documents to shuffled folds: classes spread evenly (multi-label: at random), equal texts together."""
    first, place = one_per_group(groups, len(targets))
    folds = min(_FOLDS if len(targets) <= _MANY else _FEWER_FOLDS, len(first))
    order = np.random.default_rng(seed).permutation(len(first))
    if targets.ndim == 1:
        order = order[np.argsort(targets[first][order], kind="stable")]
    fold = np.empty(len(first), np.int64)
    fold[order] = np.arange(len(first)) % max(folds, 1)
    return np.asarray(fold[place])


class Stack:
    """A logistic regression on SVM scores and mean vectors: logits = A s + B m + b."""

    def __init__(self, examples: Examples, scores: Doubles, rows: Rows) -> None:
        c, width = examples.n_classes, examples.mean.shape[1]
        self.from_scores, self.from_mean, self.bias = np.eye(c), np.zeros((c, width)), np.zeros(c)
        x = np.concatenate([scores[rows], examples.mean[rows]], axis=1)
        targets, weights = examples.targets[rows], examples.weights[rows]
        if examples.multilabel:
            for label in range(c):
                column = targets[:, label] > 0.5
                if column.any() and not column.all():
                    self._set_rows(_fit_regression(x, column, weights), [label], c)
            return
        present = np.unique(targets)
        if len(present) > 1:
            self._set_rows(_fit_regression(x, targets, weights), present, c)

    def _set_rows(self, fitted: LogisticRegression, rows: Any, n_classes: int) -> None:
        weight, bias = fitted.coef_, fitted.intercept_
        if len(weight) == 1 and len(rows) == 2:
            weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
        self.from_scores[rows], self.from_mean[rows] = weight[:, :n_classes], weight[:, n_classes:]
        self.bias[rows] = bias

    def logits(self, examples: Examples, scores: Doubles, rows: Rows) -> Doubles:
        """Return the logits of some documents: (rows, classes)."""
        return np.asarray(scores[rows] @ self.from_scores.T + examples.mean[rows] @ self.from_mean.T + self.bias)


def held_out_stack(examples: Examples, scores: Doubles, held: Rows) -> Doubles:
    """Return logits of held-out documents, each by a regression on about nine tenths of all, without it or its copies.

    The result has a row per held-out document: (held, classes).
    """
    everything, logits = np.arange(len(examples.targets)), np.zeros((len(held), examples.n_classes))
    first, place = one_per_group(None if examples.groups is None else examples.groups[held], len(held))
    for part in np.array_split(np.arange(len(first)), max(1, round(_FOLDS * len(held) / max(len(everything), 1)))):
        tested = np.isin(place, part)
        stack = Stack(examples, scores, np.setdiff1d(everything, held[tested]))
        logits[tested] = stack.logits(examples, scores, held[tested])
    return logits


def _fit_regression(x: Doubles, targets: NDArray[Any], weights: NDArray[np.float32]) -> LogisticRegression:
    with _ignore_convergence():
        return LogisticRegression(max_iter=200, tol=1e-3).fit(x, targets, sample_weight=weights)


@contextmanager
def _ignore_convergence() -> Iterator[None]:
    """Silence liblinear and lbfgs, whose warnings about early stops users cannot act on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="The number of unique classes is greater than 50%")
        yield
