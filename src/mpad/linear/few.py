"""Few labels: one regression over TF-IDF and an encoder's outputs, fitted on all documents.

With few documents the tenth that is held out elsewhere costs accuracy, and says little. Here nothing is held out: the
encoder stays as it is, and one regularized regression reads the TF-IDF of words and pairs next to its outputs. The
weight of TF-IDF and the temperature are chosen by cross-validation, which also gives the accuracy.

    logits = P x + W (A v + a) / scale + b

x is the TF-IDF, v the vector of a document in the network, A v + a the outputs of the encoder. P becomes the linear
part of the model, W A / scale the last layer of the network. Further documents (`partial_fit`) change W and b.

Documents without labels can get soft labels: probabilities by a regression on the vectors of a sentence encoder that is
installed ("teacher"), or by the user. They join the documents with labels if cross-validation says that this helps.

Names or descriptions of classes are read as documents of their class with a fixed weight, so they matter less the
more labels there are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, hstack
from scipy.special import log_softmax, softmax

from mpad.config import FEW_LABELS
from mpad.data.labels import rightness
from mpad.linear.features import Doubles, Rows
from mpad.linear.fit import (
    SVM,
    Examples,
    HeldOutFit,
    LinearData,
    as_potentials,
    assign_folds,
    cross_entropies,
    cross_entropy,
    fit_regression,
    fit_temperature,
)
from mpad.linear.potentials import Potentials

_SHARES = (0.5, 1.0, 2.0, 4.0)  # scale of TF-IDF next to outputs of length one
_PRIOR = 5.0  # nats by which a share of twice or half the usual one must be better, on all documents together
_STRENGTH, _MANY_STRENGTH = 30.0, 3_000.0  # C of the regression; with many labels, C times their number
_FEWEST = 10  # documents; from fewer nothing is concluded
_MOST_FOLDS, _MANY = 5, 1_000  # folds; with more documents one of them decides
DESCRIPTION_WEIGHT = 4.0  # of a description in the loss, where a document has 1

SoftLabels = Callable[[Rows], Doubles]  # from labeled documents to probabilities of the unlabeled: (documents, classes)


@dataclass(frozen=True)
class Unlabeled:
    """Documents without labels, and what can label them."""

    documents: Rows  # rows of the corpus
    teachers: Mapping[str, NDArray[np.floating]]  # vectors of all documents of the corpus by teacher
    given: NDArray[np.float64] | None = None  # probabilities by the user: (documents, classes)


@dataclass(frozen=True)
class FewLabels:
    """A model of few labels, and what cross-validation says of it."""

    fitted: HeldOutFit  # with the linear part
    logits: Doubles  # of documents, in order, that the regression had not seen: (documents, classes)
    last_weight: NDArray[np.float32]  # (classes, document_width), of the network
    last_bias: NDArray[np.float32]  # (classes,)
    splits: list[tuple[Rows, Rows]]  # documents that a regression was fitted on, and those that it then predicted
    soft_by: str | None = None  # what labeled the unlabeled documents, if they were used
    tried: dict[str, float] = field(default_factory=dict)  # accuracy with each kind of soft labels; "" is without


def fit_few_labels(
    data: LinearData,
    vectors: NDArray[np.floating],
    to_outputs: NDArray[np.floating],
    offset: NDArray[np.floating],
    trained: Rows,
    checked: Rows,
    seed: int,
    described: Rows,
    unlabeled: Unlabeled | None = None,
) -> FewLabels:
    """Fit on the documents `trained`; choose by cross-validation, or by the documents `checked` if there are any.

    `vectors` (documents, document_width) are those of the network, `to_outputs` and `offset` the encoder's last layer.
    `described` are names or descriptions of classes, with their targets: they belong to every fit, and are not scored.
    """
    outputs = vectors @ to_outputs.T + offset
    scale = 1 / max(float(np.linalg.norm(outputs[trained], axis=1).mean()), float(np.finfo(np.float32).tiny))
    read = np.concatenate([trained, described, [] if unlabeled is None else unlabeled.documents]).astype(np.int64)
    examples = data.examples(np.arange(len(data.targets)), learn_from=read)
    scaled = (scale * outputs).astype(np.float32)
    choices = [_Inputs(share, (share * examples.features.x).tocsr(), scaled, described) for share in _SHARES]
    splits = [(trained, checked)] if len(checked) else _folds(examples, trained, seed)
    scored = np.sort(np.concatenate([tested for _, tested in splits]))
    targets = examples.targets[scored]
    results = [_Unseen.of(_unseen_logits(examples, inputs, splits)[scored], targets) for inputs in choices]
    losses = [result.loss + _PRIOR * np.log2(share) ** 2 for share, result in zip(_SHARES, results, strict=True)]
    best = int(np.argmin(losses))
    inputs, result = choices[best], results[best]
    soft_by, soft, tried = None, None, {"": result.accuracy}
    for name, candidate in ({} if unlabeled is None else _candidates(examples, inputs, unlabeled)).items():
        other = _Unseen.of(_unseen_logits(examples, inputs, splits, candidate)[scored], targets)
        tried[name] = other.accuracy
        if other.clearly_better_than(result):
            soft_by, soft, result = name, candidate, other
    if unlabeled is not None and soft is None:
        without = fit_few_labels(data, vectors, to_outputs, offset, trained, checked, seed, described)
        return replace(without, tried=tried)
    n = examples.features.x.shape[1]
    weight, bias = _fit(examples, inputs, trained, soft)
    of_outputs = result.factor * scale * weight[:, n:]
    fitted = HeldOutFit(
        {"mpad": result.accuracy} if len(targets) else {},
        potentials=_as_linear_part(examples, result.factor * inputs.share * weight[:, :n]),
        part_weights=np.array([1.0, 0.0, 1.0]),
    )
    last_bias = (result.factor * bias + of_outputs @ offset).astype(np.float32)
    last_weight = (of_outputs @ to_outputs).astype(np.float32)
    return FewLabels(fitted, result.logits, last_weight, last_bias, splits, soft_by, tried if unlabeled else {})


@dataclass(frozen=True)
class _Unseen:
    """Calibrated logits of documents that the regression had not seen, and how good they are."""

    logits: Doubles  # (documents, classes)
    factor: float  # that calibrates
    losses: Doubles  # (documents,)
    accuracy: float

    @classmethod
    def of(cls, logits: Doubles, targets: NDArray[Any]) -> "_Unseen":
        factor = fit_temperature(logits, targets)
        accuracy = float(rightness(logits, targets).mean()) if len(targets) else 0.0
        return cls(factor * logits, factor, cross_entropies(factor * logits, targets), accuracy)

    @property
    def loss(self) -> float:
        return float(self.losses.sum())

    def clearly_better_than(self, other: "_Unseen") -> bool:
        """Return whether the losses are lower by over a standard error of the difference."""
        gain = other.losses - self.losses
        return len(gain) >= _FEWEST and float(gain.mean()) > float(gain.std(ddof=1)) / np.sqrt(len(gain))


def _as_linear_part(examples: Examples, weight: Doubles) -> Potentials:
    """Return weights of TF-IDF (classes, features) as a linear part without biases, next to a network's logits."""
    c, width = examples.n_classes, examples.features.mean.shape[1]
    # Of two classes a linear part has one row of scores, which count for the second class and against the first.
    rows = weight[1:] if c == 2 and examples.targets.ndim == 1 else weight
    scores = SVM(rows, np.zeros(len(rows)), c)
    return as_potentials(examples, scores, np.eye(c), np.zeros((c, width)), np.zeros(c), 1.0)


@dataclass(frozen=True)
class _Inputs:
    share: float  # scale of TF-IDF
    tfidf: csr_matrix  # (documents, words and pairs), scaled
    outputs: NDArray[np.float32]  # (documents, width) of the encoder, of length one in the mean
    described: Rows  # descriptions of classes, part of every fit

    @cached_property
    def x(self) -> csr_matrix:
        """Both, side by side."""
        return hstack([self.tfidf, csr_matrix(self.outputs.astype(np.float64))]).tocsr()


def _folds(examples: Examples, trained: Rows, seed: int) -> list[tuple[Rows, Rows]]:
    """Split documents for cross-validation: (to fit on, to predict) for each fold."""
    groups = None if examples.groups is None else examples.groups[trained]
    fold = assign_folds(examples.targets[trained], seed, groups, _MOST_FOLDS)
    n = int(fold.max(initial=-1)) + 1 if len(trained) <= _MANY else 1
    return [(trained[fold != number], trained[fold == number]) for number in range(n)]


def _unseen_logits(
    examples: Examples, inputs: _Inputs, splits: Sequence[tuple[Rows, Rows]], soft: "_Soft | None" = None
) -> Doubles:
    """Return logits of documents by regressions that have not seen them: (documents, classes)."""
    logits = np.zeros((len(examples.targets), examples.n_classes))
    for fitted_on, tested in splits:
        weight, bias = _fit(examples, inputs, fitted_on, soft)
        logits[tested] = inputs.x[tested] @ weight.T + bias
    return logits


def _fit(examples: Examples, inputs: _Inputs, rows: Rows, soft: "_Soft | None" = None) -> tuple[Doubles, Doubles]:
    """Fit on some documents, and on unlabeled ones: weights (classes, inputs) and biases (classes,)."""
    rows = np.concatenate([rows, inputs.described])
    targets, weights = examples.targets[rows], examples.weights[rows]
    if soft is None:
        strength = _STRENGTH if len(rows) < FEW_LABELS else _MANY_STRENGTH / len(rows)
        return fit_regression(inputs.x[rows], targets, weights, examples.n_classes, strength)
    probabilities = np.concatenate([np.eye(examples.n_classes)[targets], soft.labels(rows)])
    rows = np.concatenate([rows, soft.documents])
    weights = np.concatenate([weights, np.full(len(soft.documents), weights.mean())])
    n, used = inputs.tfidf.shape[1], np.flatnonzero(inputs.tfidf[rows].getnnz(0))  # words of these documents
    own, bias = _fit_probabilities(inputs.tfidf[rows][:, used], inputs.outputs[rows], probabilities, weights)
    weight = np.zeros((len(own), n + inputs.outputs.shape[1]))
    weight[:, used], weight[:, n:] = own[:, : len(used)], own[:, len(used) :]
    return weight, bias


def _fit_probabilities(
    tfidf: csr_matrix, outputs: NDArray[np.float32], probabilities: Doubles, weights: NDArray[np.floating]
) -> tuple[Doubles, Doubles]:
    """Fit the regression to probabilities (documents, classes): weights (classes, inputs) and biases (classes,)."""
    c, n = probabilities.shape[1], tfidf.shape[1]
    strength = _STRENGTH / (2 if c == 2 else 1)  # scikit-learn's regression has one row of weights for two classes
    total = strength * float(weights.sum())

    def loss(flat: Doubles) -> tuple[float, Doubles]:
        w = flat.reshape(c, -1)
        log_p = log_softmax(tfidf @ w[:, :n].T + outputs @ w[:, n:-1].T.astype(np.float32) + w[:, -1], axis=1)
        slope = strength * weights[:, None] * (np.exp(log_p) - probabilities)
        by_outputs = slope.T.astype(np.float32) @ outputs
        gradient = np.concatenate(
            [(tfidf.T @ slope).T + w[:, :n], by_outputs + w[:, n:-1], slope.sum(0)[:, None]], axis=1
        )
        value = -strength * float(weights @ (probabilities * log_p).sum(1)) + 0.5 * float((w[:, :-1] ** 2).sum())
        return value / total, gradient.ravel() / total

    size = c * (n + outputs.shape[1] + 1)
    found = minimize(
        loss, np.zeros(size), jac=True, method="L-BFGS-B", options={"maxiter": 100, "gtol": 1e-4, "maxcor": 5}
    )
    w = found.x.reshape(c, -1)
    return w[:, :-1], w[:, -1]


# ── Documents without labels ──


@dataclass(frozen=True)
class _Soft:
    """Unlabeled documents, and their labels by a model of labeled ones."""

    documents: Rows
    labels: SoftLabels


def _candidates(examples: Examples, inputs: _Inputs, unlabeled: Unlabeled) -> dict[str, _Soft]:
    """Return kinds of soft labels by name: each teacher's, the user's, and their mean with the encoder's."""

    def by(x: Any) -> SoftLabels:
        def labels(rows: Rows) -> Doubles:
            of = examples.targets[rows], examples.weights[rows], examples.n_classes
            weight, bias = fit_regression(x[rows], *of, _STRENGTH)
            return np.asarray(softmax(x[unlabeled.documents] @ weight.T + bias, axis=1))

        return labels

    sources = {name: by(vectors.astype(np.float32)) for name, vectors in unlabeled.teachers.items()}
    if unlabeled.given is not None:
        given = unlabeled.given
        sources["the given probabilities"] = lambda rows: given
    if not sources:
        return {}
    everyone = [*sources.values(), by(inputs.x)]

    def mean(rows: Rows) -> Doubles:
        return np.asarray(np.mean([labels(rows) for labels in everyone], axis=0))

    named: dict[str, SoftLabels] = {**sources, ", ".join(sources) + " and the encoder": mean}
    return {name: _Soft(unlabeled.documents, labels) for name, labels in named.items()}


# ── Further documents ──


def update_weights(
    logits: NDArray[np.floating],
    outputs: NDArray[np.floating],
    targets: NDArray[Any],
    weights: NDArray[np.floating],
    n_before: int,
) -> tuple[Doubles, Doubles]:
    """Return changes of the weights (classes, width) and biases (classes,) of outputs by further documents.

    `logits` are the model's for these documents, `outputs` (documents, width) have length one in the mean. The weights
    stay near those that `n_before` documents gave, as if each had told as much as a document can.
    """
    c, width = logits.shape[1], outputs.shape[1]
    x = np.column_stack([outputs, np.ones(len(outputs))])
    curvature = 0.25 * (x**2).mean(0)  # of the cross-entropy per document, at most
    precision = 1 / _STRENGTH + n_before * curvature

    def loss(change: Doubles) -> tuple[float, Doubles]:
        change = change.reshape(c, width + 1)
        value, slope = cross_entropy(logits + x @ change.T, targets, weights)
        gradient = slope.T @ x + precision * change
        return value + 0.5 * float((precision * change**2).sum()), gradient.ravel()

    found = minimize(loss, np.zeros(c * (width + 1)), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    change = found.x.reshape(c, width + 1)
    return change[:, :width], change[:, width]
