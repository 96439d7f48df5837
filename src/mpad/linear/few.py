"""Few labels: one regression over TF-IDF and an encoder's outputs, fitted on all documents.

With few documents the tenth that is held out elsewhere costs accuracy, and says little. Here nothing is held out: the
encoder stays as it is, and one regularized regression reads the TF-IDF of words and pairs next to its outputs. The
weight of TF-IDF and the temperature are chosen by cross-validation, which also gives the accuracy.

    logits = P x + W (A v + a) / scale + b

x is the TF-IDF, v the vector of a document in the network, A v + a the outputs of the encoder. P becomes the linear
part of the model, W A / scale the last layer of the network. Further documents (`partial_fit`) change W and b.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, hstack

from mpad.data.labels import rightness
from mpad.linear.features import Doubles, Rows
from mpad.linear.fit import (
    SVM,
    Examples,
    HeldOutFit,
    LinearData,
    as_potentials,
    assign_folds,
    cross_entropy,
    fit_regression,
    fit_temperature,
)
from mpad.linear.potentials import Potentials

_SHARES = (0.5, 1.0, 2.0, 4.0)  # scale of TF-IDF next to outputs of length one
_PRIOR = 5.0  # nats by which a share of twice or half the usual one must be better, on all documents together
_STRENGTH = 30.0  # C of the regression
_MOST_FOLDS = 5


@dataclass(frozen=True)
class FewLabels:
    """A model of few labels, and what cross-validation says of it."""

    fitted: HeldOutFit  # with the linear part
    logits: Doubles  # of documents, in order, that the regression had not seen: (documents, classes)
    last_weight: NDArray[np.float32]  # (classes, document_width), of the network
    last_bias: NDArray[np.float32]  # (classes,)
    splits: list[tuple[Rows, Rows]]  # documents that a regression was fitted on, and those that it then predicted


def fit_few_labels(
    data: LinearData,
    vectors: NDArray[np.floating],
    to_outputs: NDArray[np.floating],
    offset: NDArray[np.floating],
    trained: Rows,
    checked: Rows,
    seed: int,
) -> FewLabels:
    """Fit on the documents `trained`; choose by cross-validation, or by the documents `checked` if there are any.

    `vectors` (documents, document_width) are those of the network, `to_outputs` and `offset` the encoder's last layer.
    """
    outputs = vectors @ to_outputs.T + offset
    scale = 1 / max(float(np.linalg.norm(outputs[trained], axis=1).mean()), float(np.finfo(np.float32).tiny))
    examples = data.examples(np.arange(len(data.targets)), learn_from=trained)
    tried = [
        _Inputs(share, hstack([share * examples.features.x, csr_matrix(scale * outputs)]).tocsr()) for share in _SHARES
    ]
    splits = [(trained, checked)] if len(checked) else _folds(examples, trained, seed)
    scored = np.sort(np.concatenate([tested for _, tested in splits]))
    logits = [_unseen_logits(examples, inputs, splits)[scored] for inputs in tried]
    targets = examples.targets[scored]
    factors = [fit_temperature(each, targets) for each in logits]
    losses = [cross_entropy(factor * each, targets)[0] for factor, each in zip(factors, logits, strict=True)]
    best = int(np.argmin([loss + _PRIOR * np.log2(share) ** 2 for share, loss in zip(_SHARES, losses, strict=True)]))
    factor, inputs, n = factors[best], tried[best], examples.features.x.shape[1]
    weight, bias = _fit(examples, inputs, trained)
    of_outputs = factor * scale * weight[:, n:]
    fitted = HeldOutFit(
        {"mpad": float(rightness(logits[best], targets).mean())} if len(targets) else {},
        potentials=_as_linear_part(examples, factor * inputs.share * weight[:, :n]),
        part_weights=np.array([1.0, 0.0, 1.0]),
    )
    last_bias = factor * bias + of_outputs @ offset
    last_weight = of_outputs @ to_outputs
    return FewLabels(
        fitted, factor * logits[best], last_weight.astype(np.float32), last_bias.astype(np.float32), splits
    )


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
    x: csr_matrix  # (documents, TF-IDF and outputs)


def _folds(examples: Examples, trained: Rows, seed: int) -> list[tuple[Rows, Rows]]:
    """Split documents for cross-validation: (to fit on, to predict) for each fold."""
    groups = None if examples.groups is None else examples.groups[trained]
    fold = assign_folds(examples.targets[trained], seed, groups, _MOST_FOLDS)
    return [(trained[fold != number], trained[fold == number]) for number in range(int(fold.max(initial=-1)) + 1)]


def _unseen_logits(examples: Examples, inputs: _Inputs, splits: Sequence[tuple[Rows, Rows]]) -> Doubles:
    """Return logits of documents by regressions that have not seen them: (documents, classes)."""
    logits = np.zeros((len(examples.targets), examples.n_classes))
    for fitted_on, tested in splits:
        weight, bias = _fit(examples, inputs, fitted_on)
        logits[tested] = inputs.x[tested] @ weight.T + bias
    return logits


def _fit(examples: Examples, inputs: _Inputs, rows: Rows) -> tuple[Doubles, Doubles]:
    """Fit on some documents: weights (classes, inputs) and biases (classes,)."""
    of = examples.targets[rows], examples.weights[rows], examples.n_classes
    return fit_regression(inputs.x[rows], *of, _STRENGTH)


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
