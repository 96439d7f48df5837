"""Fits the linear part of a model: potentials of words and pairs of words, and how much the network counts beside it.

1. A linear SVM over words and pairs of words, weighed by TF-IDF. Its scores of the training documents themselves are
   far too good, so each is scored by an SVM that has not seen it: ten shuffled folds.
2. A logistic regression on those scores and the mean of the word vectors (the `linear-stack` of the zoo).
3. On held-out documents, which the network has not seen either, three positive numbers: what the SVM, the regression
   and the network count in the sum. They are also what a temperature would be: the probabilities fit these documents.
4. SVM and regression again, on all documents.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from mpad.estimators.linear_features import Doubles, Features, Rows
from mpad.graph.packed import PackedGraphs
from mpad.graph.potentials import Potentials, both_classes
from mpad.labels import rightness

_LIBLINEAR = Lock()
_FOLDS, _FEWER_FOLDS, _MANY = 10, 5, 20_000  # folds; of more documents than that, fewer
_USUAL = np.log([0.8, 0.5, 0.35])  # what SVM, regression and network count, as far as held-out documents do not tell


@dataclass(frozen=True)
class LinearPart:
    """What was fitted, and how well each part does on held-out documents."""

    potentials: Potentials
    accuracies: dict[str, float]  # "tfidf-svm", "linear-stack", "mpad": the model; empty without held-out documents
    answers_by: str  # "mpad", or which of the others answers alone, because it is clearly better


@dataclass(frozen=True)
class _Examples:
    x: csr_matrix  # (documents, words and pairs)
    mean: Doubles  # (documents, width), centred and scaled
    targets: NDArray[Any]  # (documents,) class numbers, or (documents, classes) indicators
    weights: NDArray[np.float32]  # (documents,)
    n_classes: int

    @property
    def multilabel(self) -> bool:
        return self.targets.ndim == 2


def fit_linear_part(
    graphs: PackedGraphs,
    documents: Rows,
    targets: NDArray[Any],
    weights: NDArray[np.float32],
    n_classes: int,
    n_words: int,
    vectors: NDArray[np.floating],
    held: Rows,
    network_logits: NDArray[np.floating],
    seed: int,
) -> LinearPart:
    """Fit on some documents of a corpus, `held` (places among them) held out; `network_logits` are those documents'.

    `targets` and `weights` have a row for each of `documents`. Words below `n_words` can have a potential. `vectors`
    have a row for each word that can be met; without columns, where they were learnt by the network itself.
    """
    features = Features(graphs, documents, n_words, vectors)
    examples = _Examples(features.x, features.mean, targets, weights, n_classes)
    scores = _cross_fitted_scores(examples, seed)
    chosen = np.setdiff1d(np.arange(len(documents)), held)
    experts = [scores[held], _Stack(examples, scores, chosen).logits(examples, scores, held), network_logits]
    counts = _joined(experts, targets[held], _USUAL)
    together: Any = sum(count * part for count, part in zip(counts, experts, strict=True))
    named = {"tfidf-svm": experts[0], "linear-stack": experts[1], "mpad": together}
    right = {name: rightness(logits, targets[held]) for name, logits in named.items()}
    answers_by = max(right, key=lambda name: (_clearly_better(right[name], right["mpad"]), right[name].sum()))
    if not _clearly_better(right[answers_by], right["mpad"]):
        answers_by = "mpad"
    if answers_by != "mpad":
        alone = list(named).index(answers_by)
        counts = np.zeros(3)
        counts[alone] = _joined([experts[alone]], targets[held], _USUAL[[alone]])[0]
    accuracies = {name: float(each.mean()) for name, each in right.items()} if len(held) else {}
    if accuracies:
        accuracies["mpad"] = accuracies[answers_by]
    return LinearPart(_fit_potentials(features, examples, scores, counts), accuracies, answers_by)


def fit_stack(
    graphs: PackedGraphs,
    targets: NDArray[np.int64],
    n_classes: int,
    n_words: int,
    vectors: NDArray[np.floating],
    seed: int = 0,
) -> Potentials:
    """Fit SVM and regression on all documents, without a network: the `linear-stack`."""
    documents = np.arange(len(graphs))
    features = Features(graphs, documents, n_words, vectors)
    examples = _Examples(features.x, features.mean, targets, np.ones(len(targets), np.float32), n_classes)
    scores = _cross_fitted_scores(examples, seed)
    return _fit_potentials(features, examples, scores, np.array([0.0, 1.0, 0.0]))


def fit_temperature(logits: NDArray[np.floating], targets: NDArray[Any]) -> float:
    """What logits are to be multiplied by, so that their probabilities fit these documents (1 / temperature)."""
    return float(_joined([logits], targets, np.zeros(1))[0])


def _fit_potentials(features: Features, examples: "_Examples", scores: Doubles, counts: Doubles) -> Potentials:
    """Fit SVM and regression on all documents; `counts` says what they and the network count in the sum."""
    everything, n_classes = np.arange(len(examples.targets)), examples.n_classes
    with _quiet():
        svm, stack = _SVM(examples, everything), _Stack(examples, scores, everything)
    from_mean = counts[1] * stack.from_mean / features.scale
    pairs = np.stack(np.divmod(features.keys, max(features.n_words, 1)), axis=1)
    return Potentials(
        pairs=pairs.astype(np.int32),
        idf=features.idf,
        idf_new=np.array(features.idf_new, np.float32),
        potential=svm.weight.T.astype(np.float16),
        intercept=svm.intercept.astype(np.float32),
        from_scores=(counts[0] * np.eye(n_classes) + counts[1] * stack.from_scores).astype(np.float32),
        from_mean=from_mean.astype(np.float32),
        bias=(counts[1] * stack.bias - from_mean @ features.centre).astype(np.float32),
        network=np.array(counts[2], np.float32),
        vectors=features.vectors,
    )


class _SVM:
    """A linear SVM on some of the examples; of many labels a document, one a label."""

    def __init__(self, examples: _Examples, rows: Rows) -> None:
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


def _cross_fitted_scores(examples: _Examples, seed: int) -> Doubles:
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

    def __init__(self, examples: _Examples, scores: Doubles, rows: Rows) -> None:
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

    def logits(self, examples: _Examples, scores: Doubles, rows: Rows) -> Doubles:
        """Logits of some documents: (rows, classes)."""
        return np.asarray(scores[rows] @ self.from_scores.T + examples.mean[rows] @ self.from_mean.T + self.bias)


def _fit_regression(x: Doubles, targets: NDArray[Any], weights: NDArray[np.float32]) -> LogisticRegression:
    with _quiet():
        return LogisticRegression(max_iter=200, tol=1e-3).fit(x, targets, sample_weight=weights)


def _joined(experts: list[NDArray[Any]], targets: NDArray[Any], usual: Doubles) -> Doubles:
    """What each expert counts: the likeliest for these documents, by a log-normal prior around the usual."""
    parts = np.stack([np.asarray(part, np.float64) for part in experts])  # (experts, documents, classes)
    if not parts.shape[1]:
        return np.asarray(np.exp(usual))

    def loss(log_counts: Doubles) -> tuple[float, Doubles]:
        counts = np.exp(log_counts)
        logits = np.tensordot(counts, parts, axes=1)
        value, slope = _cross_entropy(logits, targets)
        each = counts * np.tensordot(parts, slope, axes=([1, 2], [0, 1]))
        away = log_counts - usual
        return value + 0.5 * float(away @ away), each + away

    bounds = [(-12, 6)] * len(usual)
    return np.asarray(np.exp(minimize(loss, usual, jac=True, method="L-BFGS-B", bounds=bounds).x))


def _cross_entropy(logits: Doubles, targets: NDArray[Any]) -> tuple[float, Doubles]:
    """The sum over documents, and its derivative by the logits."""
    if targets.ndim == 2:
        p = 1 / (1 + np.exp(-np.clip(logits, -500, 500)))
        losses = np.logaddexp(0, logits) - targets * logits
        return float(losses.mean(1).sum()), (p - targets) / targets.shape[1]
    shifted = logits - logits.max(1, keepdims=True)
    total = np.exp(shifted).sum(1, keepdims=True)
    rows = np.arange(len(targets))
    slope = np.exp(shifted) / total
    slope[rows, targets] -= 1
    return float((np.log(total[:, 0]) - shifted[rows, targets]).sum()), slope


def _clearly_better(one: Doubles, other: Doubles) -> bool:
    """Whether one is right more often than the other, by more than a standard error of the difference."""
    difference = one - other
    return float(difference.sum()) > float(np.sqrt((difference**2).sum()))


@contextmanager
def _quiet() -> Iterator[None]:
    """Liblinear and lbfgs stop a little early on some corpora: nothing that a user could mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="The number of unique classes is greater than 50%")
        yield
