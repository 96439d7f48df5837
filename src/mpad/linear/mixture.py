"""Weights of the parts of a model, fitted on held-out documents; they also calibrate the probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from mpad.data.labels import rightness
from mpad.linear.features import Doubles
from mpad.linear.potentials import Potentials

_PRIOR = np.log([0.8, 0.5, 0.35])  # prior mean of the log weights of SVM, regression and network


@dataclass(frozen=True)
class HeldOutFit:
    """Results of the fit on held-out documents: the linear part or a temperature, and the accuracy of each part."""

    accuracies: dict[str, float] = field(default_factory=dict)  # of "ngram-svm", "ngram-stack", "mpad" (all together)
    answers_by: str = "mpad"  # or the part that is clearly better without the others
    potentials: Potentials | None = None
    logits: NDArray[np.floating] | None = None  # of the whole model, on held-out documents
    temperature: float | None = None  # if there is no linear part
    part_weights: Doubles | None = None  # (3,): SVM, regression, network


def fit_temperature(logits: NDArray[np.floating], targets: NDArray[Any]) -> float:
    """Fit the factor of the logits that calibrates probabilities on these documents (1 / temperature)."""
    return float(fit_part_weights([logits], targets, np.zeros(1))[0])


@dataclass(frozen=True)
class Joined:
    """Weights of SVM, regression and network, and the accuracy of each on held-out documents."""

    part_weights: Doubles  # (3,)
    answers_by: str
    accuracies: dict[str, float]
    logits: Doubles  # (held, classes), weighted sum


def join_parts(experts: Sequence[NDArray[np.floating]], targets: NDArray[Any]) -> Joined:
    """Fit the weights of SVM, regression and network, given their logits (`experts`) on documents unseen by all."""
    weights = fit_part_weights(experts, targets, _PRIOR)
    together: Any = sum(weight * part for weight, part in zip(weights, experts, strict=True))
    named = {"ngram-svm": experts[0], "ngram-stack": experts[1], "mpad": together}
    right = {name: rightness(logits, targets) for name, logits in named.items()}
    answers_by = max(right, key=lambda name: (_clearly_better(right[name], right["mpad"]), right[name].sum()))
    if not _clearly_better(right[answers_by], right["mpad"]):
        answers_by = "mpad"
    if answers_by != "mpad":
        best = list(named).index(answers_by)
        weights = np.zeros(3)
        weights[best] = fit_part_weights([experts[best]], targets, _PRIOR[[best]])[0]
        together = weights[best] * experts[best]
    accuracies = {name: float(each.mean()) for name, each in right.items()} if len(targets) else {}
    if accuracies:
        accuracies["mpad"] = accuracies[answers_by]
    return Joined(weights, answers_by, accuracies, together)


def fit_part_weights(experts: Sequence[NDArray[Any]], targets: NDArray[Any], prior: Doubles) -> Doubles:
    """Fit one positive weight per expert: cross-entropy with a log-normal prior around exp(prior)."""
    parts = np.stack([np.asarray(part, np.float64) for part in experts])  # (experts, documents, classes)
    if not parts.shape[1]:
        return np.asarray(np.exp(prior))

    def loss(log_weights: Doubles) -> tuple[float, Doubles]:
        weights = np.exp(log_weights)
        value, slope = _cross_entropy(np.tensordot(weights, parts, axes=1), targets)
        gradient = weights * np.tensordot(parts, slope, axes=([1, 2], [0, 1]))
        away = log_weights - prior
        return value + 0.5 * float(away @ away), gradient + away

    bounds = [(-12, 6)] * len(prior)
    return np.asarray(np.exp(minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=bounds).x))


def _cross_entropy(logits: Doubles, targets: NDArray[Any]) -> tuple[float, Doubles]:
    """Return the cross-entropy summed over documents, and its gradient by the logits."""
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
    """Return whether the first is more accurate by over two standard errors of the difference."""
    difference = one - other
    return float(difference.sum()) > 2 * float(np.sqrt((difference**2).sum()))
