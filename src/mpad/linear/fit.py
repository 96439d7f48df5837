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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, issparse
from scipy.special import expit, logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from mpad.data.equal_texts import one_per_group
from mpad.data.labels import rightness
from mpad.graph.packed import PackedGraphs
from mpad.linear.features import Doubles, Features, Rows
from mpad.linear.potentials import Potentials, both_classes

LIBLINEAR = Lock()  # its random generator is global: concurrent fits would not be reproducible
_FOLDS, _FEWER_FOLDS, _MANY = 10, 5, 20_000  # folds; fewer for more than _MANY documents
_PRIOR = np.log([0.8, 0.5, 0.35])  # prior mean of the log weights of SVM, regression and network


@dataclass(frozen=True)
class LinearData:
    """A corpus that the linear part is fitted on. Arrays have a row per document of the corpus."""

    graphs: PackedGraphs
    targets: NDArray[Any]  # (documents,) class numbers, or (documents, classes) indicators
    weights: NDArray[np.float32]  # (documents,)
    n_classes: int
    n_words: int  # words with a potential
    vectors: NDArray[np.floating]  # (words, width), without columns if the network learns them
    words: Sequence[str] = ()  # spelling of the words; without it there are no character n-grams
    groups: Rows | None = None  # (documents,), the same for equal texts

    def examples(self, documents: Rows, learn_from: Rows | None = None) -> "Examples":
        """Return some documents as inputs; their statistics come from the places `learn_from`, by default all."""
        features = Features(self.graphs, documents, self.n_words, self.vectors, self.words, learn_from=learn_from)
        groups = None if self.groups is None else self.groups[documents]
        return Examples(features, self.targets[documents], self.weights[documents], self.n_classes, groups)


@dataclass(frozen=True)
class Examples:
    """Inputs of the linear model, with targets and weights."""

    features: Features
    targets: NDArray[Any]  # (documents,) class numbers, or (documents, classes) indicators
    weights: NDArray[np.float32]  # (documents,)
    n_classes: int
    groups: Rows | None = None  # (documents,), the same for equal texts


@dataclass(frozen=True)
class HeldOutFit:
    """Results of the fit on held-out documents: the linear part or a temperature, and the accuracy of each part."""

    accuracies: dict[str, float] = field(default_factory=dict)  # of "ngram-svm", "ngram-stack", "mpad" (all together)
    answers_by: str = "mpad"  # or the part that is clearly better without the others
    potentials: Potentials | None = None
    logits: NDArray[np.floating] | None = None  # of the whole model, on held-out documents
    temperature: float | None = None  # if there is no linear part
    part_weights: Doubles | None = None  # (3,): SVM, regression, network
    bias: Doubles | float = 0.0  # (classes,), if documents have different weights


def fit_linear_part(
    data: LinearData,
    seen: Rows,
    held: Rows,
    network_logits: NDArray[np.floating],
    seed: int,
    train_on_held: bool = True,
) -> HeldOutFit:
    """Fit on documents that the network was trained on (`seen`), and weigh the parts on `held` ones.

    `network_logits` are the network's logits for the held-out documents. With `train_on_held`, SVM and regression are
    also trained on these, after each has been scored by models that have not seen it; otherwise only the weights of
    the parts are fitted on them.
    """
    documents = np.concatenate([seen, held])
    held, trained = np.arange(len(seen), len(documents)), np.arange(len(documents) if train_on_held else len(seen))
    examples = data.examples(documents, learn_from=trained)
    scores, svm = _cross_fitted_scores(examples, trained, seed)
    if train_on_held:
        stacked = held_out_stack(examples, scores, held)
        stack = Stack(examples, scores, trained)
    else:
        scores[held] = svm.scores(examples.features.x[held])
        stack = Stack(examples, scores, trained)
        stacked = stack.logits(examples, scores, held)
    experts = [scores[held], stacked, network_logits]
    joined = join_parts(experts, examples.targets[held], examples.weights[held])
    assert joined.part_weights is not None
    return replace(joined, potentials=make_potentials(examples, svm, stack, joined.part_weights, joined.bias))


def fit_all(data: LinearData, part_weights: Doubles, seed: int = 0, bias: Doubles | float = 0.0) -> Potentials:
    """Fit on all documents of a corpus, given the weights of SVM, regression and network, and the biases."""
    everything = np.arange(len(data.graphs))
    examples = data.examples(everything)
    scores, svm = _cross_fitted_scores(examples, everything, seed)
    return make_potentials(examples, svm, Stack(examples, scores, everything), part_weights, bias)


def fit_stack(
    graphs: PackedGraphs, targets: NDArray[Any], n_classes: int, n_words: int, vectors: NDArray[np.floating]
) -> Potentials:
    """Fit SVM and regression on all documents, without a network or character n-grams: the `linear-stack`."""
    ones = np.ones(len(targets), np.float32)
    return fit_all(LinearData(graphs, targets, ones, n_classes, n_words, vectors), np.array([0.0, 1.0, 0.0]))


def make_potentials(
    examples: Examples, svm: "SVM", stack: "Stack", part_weights: Doubles, class_bias: Doubles | float
) -> Potentials:
    """Join an SVM and a regression into one linear part."""
    from_scores = part_weights[0] * np.eye(examples.n_classes) + part_weights[1] * stack.from_scores
    from_mean = part_weights[1] * stack.from_mean / examples.features.scale
    bias = part_weights[1] * stack.bias - from_mean @ examples.features.center + class_bias
    return as_potentials(examples, svm, from_scores, from_mean, bias, part_weights[2])


def as_potentials(
    examples: Examples, svm: "SVM", from_scores: Doubles, from_mean: Doubles, bias: Doubles, network: float
) -> Potentials:
    """Return a linear part: logits = A s + B m + b + w · network, s the scores of a linear model, m mean vectors."""
    features = examples.features
    known = features.known
    pairs = np.stack(np.divmod(known.keys, max(features.n_words, 1)), axis=1)
    return Potentials(
        pairs=pairs.astype(np.int32),
        idf=known.idf,
        idf_new=np.array(known.idf_new, np.float32),
        potential=known.merge_ngrams(svm.weight).T.astype(np.float16),
        intercept=svm.intercept.astype(np.float32),
        from_scores=from_scores.astype(np.float32),
        from_mean=from_mean.astype(np.float32),
        bias=bias.astype(np.float32),
        network=np.array(network, np.float32),
        vectors=features.vectors,
    )


class SVM(NamedTuple):
    """Weights of a linear SVM, one row per class; one row for two classes."""

    weight: Doubles  # (rows, features)
    intercept: Doubles  # (rows,)
    n_classes: int

    @classmethod
    def fit(cls, examples: Examples, rows: Rows) -> "SVM":
        """Fit on some of the examples. Classes without examples have a constant score."""
        x, targets, n_classes = examples.features.x[rows], examples.targets[rows], examples.n_classes
        binary = n_classes == 2 and targets.ndim == 1
        weight = np.zeros((1 if binary else n_classes, x.shape[1]))
        intercept = np.full(len(weight), 0.0 if binary else -1.0)
        if targets.ndim == 2:
            intercept[(targets > 0.5).all(0)] = 1.0
        for classes, own, bias in _fit_classes(_fit_svm, x, targets, examples.weights[rows]):
            if binary:
                return cls(own, bias, n_classes)
            pair = len(own) < len(classes)
            weight[classes] = np.concatenate([-own, own]) if pair else own
            intercept[classes] = np.concatenate([-bias, bias]) if pair else bias
        return cls(weight, intercept, n_classes)

    def scores(self, x: csr_matrix) -> Doubles:
        """Return the scores of each class: (documents, classes)."""
        scores = np.asarray(x @ self.weight.T + self.intercept)
        return both_classes(scores, self.n_classes)  # type: ignore[return-value]


class Stack:
    """A logistic regression on SVM scores and mean vectors: logits = A s + B m + b."""

    def __init__(self, examples: Examples, scores: Doubles, rows: Rows) -> None:
        mean, c = examples.features.mean, examples.n_classes
        self.from_scores, self.from_mean, self.bias = np.eye(c), np.zeros((c, mean.shape[1])), np.zeros(c)
        x = np.concatenate([scores[rows], mean[rows]], axis=1)
        targets, weights = examples.targets[rows], examples.weights[rows]
        for classes, weight, bias in _fit_classes(_fit_regression, x, targets, weights):
            if len(weight) < len(classes):
                weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
            self.from_scores[classes], self.from_mean[classes] = weight[:, :c], weight[:, c:]
            self.bias[classes] = bias

    def logits(self, examples: Examples, scores: Doubles, rows: Rows) -> Doubles:
        """Return the logits of some documents: (rows, classes)."""
        mean = examples.features.mean[rows]
        return np.asarray(scores[rows] @ self.from_scores.T + mean @ self.from_mean.T + self.bias)


def _fit_classes(
    fit: Callable[..., Any], x: Any, targets: NDArray[Any], weights: NDArray[np.float32]
) -> Iterator[tuple[Rows, Doubles, Doubles]]:
    """Fit one linear model, or one per label; yield classes with their weights and intercepts.

    Two classes may share one row of weights. Nothing is yielded for labels that all or no documents have.
    """
    if targets.ndim == 1:
        tasks = [(np.unique(targets), targets)]
    else:
        tasks = [(np.array([label]), column) for label, column in enumerate(targets.T > 0.5)]
    for classes, column in tasks:
        if len(np.unique(column)) > 1:
            fitted = fit(x, column, weights)
            yield classes, fitted.coef_, fitted.intercept_


def fit_regression(
    x: Any, targets: NDArray[Any], weights: NDArray[np.float32], n_classes: int, strength: float
) -> tuple[Doubles, Doubles]:
    """Fit a logistic regression, or one per label, with C = `strength`: weights (classes, inputs), biases (classes,).

    Two classes have opposite weights. Classes without examples have none, and a low bias. Inputs that are zero in all
    documents have no weight, and cost no time.
    """
    if issparse(x):
        used = np.flatnonzero(x.getnnz(0))
        if len(used) < x.shape[1]:
            of_used, bias = fit_regression(x[:, used], targets, weights, n_classes, strength)
            weight = np.zeros((n_classes, x.shape[1]), of_used.dtype)
            weight[:, used] = of_used
            return weight, bias

    def fit(x: Any, column: NDArray[Any], weights: NDArray[np.float32]) -> LogisticRegression:
        with _ignore_convergence():
            return LogisticRegression(C=strength, max_iter=100, tol=1e-3).fit(x, column, sample_weight=weights)

    weight, bias = np.zeros((n_classes, x.shape[1]), x.dtype), np.full(n_classes, -1.0)
    for classes, own, intercept in _fit_classes(fit, x, targets, weights):
        if len(own) < len(classes):
            own, intercept = np.concatenate([-own, own]) / 2, np.concatenate([-intercept, intercept]) / 2
        weight[classes], bias[classes] = own, intercept
    return weight, bias


def _fit_svm(x: csr_matrix, targets: NDArray[Any], weights: NDArray[np.float32]) -> LinearSVC:
    with LIBLINEAR:
        return LinearSVC(random_state=0).fit(x, targets, sample_weight=weights)


def _fit_regression(x: Doubles, targets: NDArray[Any], weights: NDArray[np.float32]) -> LogisticRegression:
    with _ignore_convergence():
        return LogisticRegression(max_iter=200, tol=1e-3).fit(x, targets, sample_weight=weights)


def _cross_fitted_scores(examples: Examples, rows: Rows, seed: int) -> tuple[Doubles, SVM]:
    """Score each document by an SVM that has not seen its text, and fit one SVM on all documents.

    Scores are (documents, classes), zero for documents outside `rows`.
    """
    scores = np.zeros((len(examples.targets), examples.n_classes))
    groups = None if examples.groups is None else examples.groups[rows]
    fold = assign_folds(examples.targets[rows], seed, groups)
    with _ignore_convergence():
        for number in range(int(fold.max(initial=-1)) + 1):
            tested = rows[fold == number]
            scores[tested] = SVM.fit(examples, rows[fold != number]).scores(examples.features.x[tested])
        return scores, SVM.fit(examples, rows)


def assign_folds(targets: NDArray[Any], seed: int, groups: Rows | None = None, most: int = _FOLDS) -> Rows:
    """Assign documents to shuffled folds: classes spread evenly (multi-label: at random), equal texts together."""
    first, place = one_per_group(groups, len(targets))
    folds = min(most if len(targets) <= _MANY else _FEWER_FOLDS, len(first))
    order = np.random.default_rng(seed).permutation(len(first))
    if targets.ndim == 1:
        order = order[np.argsort(targets[first][order], kind="stable")]
    fold = np.empty(len(first), np.int64)
    fold[order] = np.arange(len(first)) % max(folds, 1)
    return np.asarray(fold[place])


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


@contextmanager
def _ignore_convergence() -> Iterator[None]:
    """Silence liblinear and lbfgs, whose warnings about early stops users cannot act on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="The number of unique classes is greater than 50%")
        yield


def fit_temperature(logits: NDArray[np.floating], targets: NDArray[Any]) -> float:
    """Fit the factor of the logits that calibrates probabilities on these documents (1 / temperature)."""
    return float(fit_part_weights([logits], targets, np.zeros(1))[0])


def join_parts(
    experts: Sequence[NDArray[np.floating]], targets: NDArray[Any], importance: NDArray[np.floating] | None = None
) -> HeldOutFit:
    """Fit the weights of SVM, regression and network, given their logits (`experts`) on documents unseen by all.

    If documents differ in `importance`, such as by class weights, fit and comparison count them by it, and each class
    gets a bias: otherwise the weights of the parts would undo what class weights did to the parts.
    """
    alike = importance is None or not len(importance) or bool((importance == importance[0]).all())
    importance = None if alike else importance
    weights = fit_part_weights(experts, targets, _PRIOR, importance)
    together: Any = sum(weight * part for weight, part in zip(weights, experts, strict=True))
    bias = 0.0 if importance is None else fit_class_bias(together, targets, importance)
    together = together + bias
    named = {"ngram-svm": experts[0], "ngram-stack": experts[1], "mpad": together}
    scale = 1.0 if importance is None else importance / importance.mean()
    right = {name: scale * rightness(logits, targets) for name, logits in named.items()}
    answers_by = max(right, key=lambda name: (_clearly_better(right[name], right["mpad"]), right[name].sum()))
    if not _clearly_better(right[answers_by], right["mpad"]):
        answers_by = "mpad"
    if answers_by != "mpad":
        best = list(named).index(answers_by)
        weights = np.zeros(3)
        weights[best] = fit_part_weights([experts[best]], targets, _PRIOR[[best]], importance)[0]
        together, bias = weights[best] * experts[best], 0.0
    accuracies = {name: float(rightness(logits, targets).mean()) for name, logits in named.items() if len(targets)}
    if accuracies:
        accuracies["mpad"] = accuracies[answers_by]
    return HeldOutFit(accuracies, answers_by, logits=together, part_weights=weights, bias=bias)


def fit_part_weights(
    experts: Sequence[NDArray[Any]],
    targets: NDArray[Any],
    prior: Doubles,
    importance: NDArray[np.floating] | None = None,
) -> Doubles:
    """Fit one positive weight per expert: cross-entropy with a log-normal prior around exp(prior)."""
    parts = np.stack([np.asarray(part, np.float64) for part in experts])  # (experts, documents, classes)
    if not parts.shape[1]:
        return np.asarray(np.exp(prior))

    def loss(log_weights: Doubles) -> tuple[float, Doubles]:
        weights = np.exp(log_weights)
        value, slope = cross_entropy(np.tensordot(weights, parts, axes=1), targets, importance)
        gradient = weights * np.tensordot(parts, slope, axes=([1, 2], [0, 1]))
        away = log_weights - prior
        return value + 0.5 * float(away @ away), gradient + away

    bounds = [(-12, 6)] * len(prior)
    return np.asarray(np.exp(minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=bounds).x))


def fit_class_bias(logits: Doubles, targets: NDArray[Any], importance: NDArray[np.floating]) -> Doubles:
    """Fit a bias for each class by the weighted cross-entropy, with a normal prior: (classes,)."""

    def loss(bias: Doubles) -> tuple[float, Doubles]:
        value, slope = cross_entropy(logits + bias, targets, importance)
        return value + 0.5 * float(bias @ bias), slope.sum(0) + bias

    return np.asarray(minimize(loss, np.zeros(logits.shape[1]), jac=True, method="L-BFGS-B").x)


def cross_entropies(logits: NDArray[np.floating], targets: NDArray[Any]) -> Doubles:
    """Return the cross-entropy of each document, the mean over labels for multi-label targets: (documents,)."""
    if targets.ndim == 2:
        return np.asarray((np.logaddexp(0, logits) - targets * logits).mean(1))
    return np.asarray(logsumexp(logits, axis=1) - logits[np.arange(len(targets)), targets])


def cross_entropy(
    logits: Doubles, targets: NDArray[Any], weights: NDArray[np.floating] | None = None
) -> tuple[float, Doubles]:
    """Return the weighted cross-entropy summed over documents, and its gradient by the logits."""
    w = np.ones(len(targets)) if weights is None else np.asarray(weights, np.float64)
    value = float(cross_entropies(logits, targets) @ w)
    if targets.ndim == 2:
        return value, w[:, None] * (expit(logits) - targets) / targets.shape[1]
    slope = softmax(logits, axis=1)
    slope[np.arange(len(targets)), targets] -= 1
    return value, w[:, None] * slope


def _clearly_better(one: Doubles, other: Doubles) -> bool:
    """Return whether the first is more accurate by over two standard errors of the difference."""
    difference = one - other
    return float(difference.sum()) > 2 * float(np.sqrt((difference**2).sum()))
