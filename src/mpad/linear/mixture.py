"""What each part of a model counts, fitted on held-out documents; and probabilities that mean what they say."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from mpad.data.labels import rightness
from mpad.linear.features import Doubles
from mpad.linear.potentials import Potentials

_USUAL = np.log([0.8, 0.5, 0.35])  # what SVM, regression and network count, as far as held-out documents do not tell


@dataclass(frozen=True)
class HeldOutFit:
    """The linear part, or the temperature, and the accuracy of each part on held-out documents."""

    accuracies: dict[str, float] = field(default_factory=dict)  # of "ngram-svm", "ngram-stack", "mpad" (all together)
    answers_by: str = "mpad"  # or the one part that is clearly better alone
    potentials: Potentials | None = None
    logits: NDArray[np.floating] | None = None  # of the whole model, on held-out documents
    temperature: float | None = None  # if there is no linear part
    counts: Doubles | None = None  # (3,), weights of the parts


def fit_temperature(logits: NDArray[np.floating], targets: NDArray[Any]) -> float:
    """What logits are to be multiplied by, so that their probabilities fit these documents (1 / temperature)."""
    return float(_fit_counts([logits], targets, np.zeros(1))[0])


@dataclass(frozen=True)
class Joined:
    """What SVM, regression and network count, and how well each does on held-out documents."""

    counts: Doubles  # (3,)
    answers_by: str
    accuracies: dict[str, float]
    logits: Doubles  # (held, classes), of all together


def join_parts(experts: Sequence[NDArray[np.floating]], targets: NDArray[Any]) -> Joined:
    """Fit what SVM, regression and network count: `experts` are their logits, of documents that none has seen."""
    counts = _fit_counts(experts, targets, _USUAL)
    together: Any = sum(count * part for count, part in zip(counts, experts, strict=True))
    named = {"ngram-svm": experts[0], "ngram-stack": experts[1], "mpad": together}
    right = {name: rightness(logits, targets) for name, logits in named.items()}
    answers_by = max(right, key=lambda name: (_clearly_better(right[name], right["mpad"]), right[name].sum()))
    if not _clearly_better(right[answers_by], right["mpad"]):
        answers_by = "mpad"
    if answers_by != "mpad":
        alone = list(named).index(answers_by)
        counts = np.zeros(3)
        counts[alone] = _fit_counts([experts[alone]], targets, _USUAL[[alone]])[0]
        together = counts[alone] * experts[alone]
    accuracies = {name: float(each.mean()) for name, each in right.items()} if len(targets) else {}
    if accuracies:
        accuracies["mpad"] = accuracies[answers_by]
    return Joined(counts, answers_by, accuracies, together)


def _fit_counts(experts: Sequence[NDArray[Any]], targets: NDArray[Any], usual: Doubles) -> Doubles:
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
    """Whether one is right more often than the other, by more than two standard errors of the difference."""
    difference = one - other
    return float(difference.sum()) > 2 * float(np.sqrt((difference**2).sum()))
