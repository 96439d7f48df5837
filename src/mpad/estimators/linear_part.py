"""Fits the linear part of a model: potentials of words and pairs of words, and how much the network counts beside it.

1. A linear SVM over words, pairs of words and the letters of words, weighed by TF-IDF. Its scores of the training
   documents themselves are far too good, so each is scored by an SVM that has not seen it: ten shuffled folds.
2. A logistic regression on those scores and the mean of the word vectors (as the `linear-stack` of the zoo, which knows
   no letters).
3. On held-out documents, which the network has not seen either, three positive numbers: what the SVM, the regression
   and the network count in the sum. They are also what a temperature would be: the probabilities fit these documents.
4. SVM and regression again, on all documents.
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

from mpad.estimators.joining import HeldOutFit, join_parts
from mpad.estimators.linear_features import Doubles, Features, Rows
from mpad.graph.packed import PackedGraphs
from mpad.graph.potentials import Potentials, both_classes

_LIBLINEAR = Lock()
_FOLDS, _FEWER_FOLDS, _MANY = 10, 5, 20_000  # folds; of more documents than that, fewer


@dataclass(frozen=True)
class Examples:
    """Documents as a linear model takes them, with what it should say."""

    x: csr_matrix  # (documents, features), as `Known.matrix` gives them
    mean: Doubles  # (documents, width), centred and scaled
    targets: NDArray[Any]  # (documents,) class numbers, or (documents, classes) indicators
    weights: NDArray[np.float32]  # (documents,)
    n_classes: int

    @property
    def multilabel(self) -> bool:
        """Whether a document has many labels."""
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
) -> HeldOutFit:
    """Fit on some documents of a corpus, `held` (places among them) held out; `network_logits` are those documents'.

    `targets` and `weights` have a row for each of `documents`. Each of `words`, the vocabulary's, has a potential.
    `vectors` have a row for each word that can be met; without columns, where they were learnt by the network itself.
    """
    features = Features(graphs, documents, len(words), vectors, words)
    examples = Examples(features.x, features.mean, targets, weights, n_classes)
    scores = _cross_fitted_scores(examples, seed)
    joined = join_parts([scores[held], held_out_stack(examples, scores, held), network_logits], targets[held])
    potentials = _fit_potentials(features, examples, scores, joined.counts)
    return HeldOutFit(joined.accuracies, joined.answers_by, potentials, joined.logits)


def fit_stack(
    graphs: PackedGraphs,
    targets: NDArray[Any],
    n_classes: int,
    n_words: int,
    vectors: NDArray[np.floating],
    seed: int = 0,
) -> Potentials:
    """Fit SVM and regression on all documents, without a network: the `linear-stack`."""
    documents = np.arange(len(graphs))
    features = Features(graphs, documents, n_words, vectors)
    examples = Examples(features.x, features.mean, targets, np.ones(len(targets), np.float32), n_classes)
    scores = _cross_fitted_scores(examples, seed)
    return _fit_potentials(features, examples, scores, np.array([0.0, 1.0, 0.0]))


def _fit_potentials(features: Features, examples: Examples, scores: Doubles, counts: Doubles) -> Potentials:
    """Fit SVM and regression on all documents; `counts` says what they and the network count in the sum."""
    everything = np.arange(len(examples.targets))
    with _quiet():
        svm = _SVM(examples, everything)
        return make_potentials(features, examples, scores, counts, svm.weight, svm.intercept)


def make_potentials(
    features: Features, examples: Examples, scores: Doubles, counts: Doubles, weight: Doubles, intercept: Doubles
) -> Potentials:
    """An SVM's weights (rows, features), and a regression on these documents, as one linear part."""
    n_classes, known = examples.n_classes, features.known
    stack = _Stack(examples, scores, np.arange(len(examples.targets)))
    from_mean = counts[1] * stack.from_mean / features.scale
    pairs = np.stack(np.divmod(known.keys, max(features.n_words, 1)), axis=1)
    return Potentials(
        pairs=pairs.astype(np.int32),
        idf=known.idf,
        idf_new=np.array(known.idf_new, np.float32),
        potential=known.by_part(weight).T.astype(np.float16),
        intercept=intercept.astype(np.float32),
        from_scores=(counts[0] * np.eye(n_classes) + counts[1] * stack.from_scores).astype(np.float32),
        from_mean=from_mean.astype(np.float32),
        bias=(counts[1] * stack.bias - from_mean @ features.centre).astype(np.float32),
        network=np.array(counts[2], np.float32),
        vectors=features.vectors,
    )


class _SVM:
    """A linear SVM on some of the examples; of many labels a document, one a label."""

    def __init__(self, examples: Examples, rows: Rows) -> None:
        self._n_classes, width = examples.n_classes, examples.x.shape[1]
        x, targets, weights = examples.x[rows], examples.targets[rows], examples.weights[rows]
        binary = examples.n_classes == 2 and not examples.multilabel
        self.weight = np.zeros((1 if binary else examples.n_classes, width))
        self.intercept = np.full(len(self.weight), 0.0 if binary else -1.0)  # a class that is not there
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
        """Scores of each class: (documents, classes)."""
        scores = np.asarray(x @ self.weight.T + self.intercept)
        return both_classes(scores, self._n_classes)  # type: ignore[return-value]


def _fit_svm(x: csr_matrix, targets: NDArray[Any], weights: NDArray[np.float32]) -> LinearSVC:
    with _LIBLINEAR:  # draws from one generator for the whole process: two at once would not repeat
        return LinearSVC(random_state=0).fit(x, targets, sample_weight=weights)


def _cross_fitted_scores(examples: Examples, seed: int) -> Doubles:
    """Scores of each document by an SVM that has not seen it: (documents, classes)."""
    n = len(examples.targets)
    folds = min(_FOLDS if n <= _MANY else _FEWER_FOLDS, n)
    fold = _fold_of_each(examples.targets, folds, seed)

    scores = np.zeros((n, examples.n_classes))
    with _quiet():
        for number in range(folds):
            tested = np.flatnonzero(fold == number)
            scores[tested] = _SVM(examples, np.flatnonzero(fold != number)).scores(examples.x[tested])
    return scores


def _fold_of_each(targets: NDArray[Any], folds: int, seed: int) -> Rows:
    """Fold of each document, shuffled, the classes spread evenly; of many labels a document, by chance alone."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(targets))
    if targets.ndim == 1:
        order = order[np.argsort(targets[order], kind="stable")]
    fold = np.empty(len(targets), np.int64)
    fold[order] = np.arange(len(targets)) % folds
    return fold


class _Stack:
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
                    self._take(_fit_regression(x, column, weights), [label], c)
            return
        present = np.unique(targets)
        if len(present) > 1:
            self._take(_fit_regression(x, targets, weights), present, c)

    def _take(self, fitted: LogisticRegression, rows: Any, n_classes: int) -> None:
        weight, bias = fitted.coef_, fitted.intercept_
        if len(weight) == 1 and len(rows) == 2:
            weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
        self.from_scores[rows], self.from_mean[rows] = weight[:, :n_classes], weight[:, n_classes:]
        self.bias[rows] = bias

    def logits(self, examples: Examples, scores: Doubles, rows: Rows) -> Doubles:
        """Logits of some documents: (rows, classes)."""
        return np.asarray(scores[rows] @ self.from_scores.T + examples.mean[rows] @ self.from_mean.T + self.bias)


def held_out_stack(examples: Examples, scores: Doubles, held: Rows) -> Doubles:
    """Logits of held-out documents by regressions that have not seen them, but nine tenths of all: (held, classes)."""
    everything = np.arange(len(examples.targets))
    parts = np.array_split(held, max(1, round(_FOLDS * len(held) / len(everything))))
    stacks = [_Stack(examples, scores, np.setdiff1d(everything, part)) for part in parts]
    return np.concatenate([stack.logits(examples, scores, part) for stack, part in zip(stacks, parts, strict=True)])


def _fit_regression(x: Doubles, targets: NDArray[Any], weights: NDArray[np.float32]) -> LogisticRegression:
    with _quiet():
        return LogisticRegression(max_iter=200, tol=1e-3).fit(x, targets, sample_weight=weights)


@contextmanager
def _quiet() -> Iterator[None]:
    """Liblinear and lbfgs stop a little early on some corpora: nothing that a user could mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="The number of unique classes is greater than 50%")
        yield
