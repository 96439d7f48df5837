"""Faithfulness of explanations, by deletion and insertion of parts in the order of their weights.

Deletion removes the parts with the largest weights first: the better the order, the faster the label's probability
falls. Insertion adds them first to a document without parts: the better the order, the faster it rises. Both are areas
under the curve of that probability over the share of parts (Petsiuk et al., 2018), compared with a random order. Parts
are words, occurrences of words, edges of the graph or sentences, the same for every method.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.explain.document import (
    WORD,
    WORD_UNITS,
    Parts,
    PartWeights,
    check_unit,
    trace_document,
)
from mpad.explain.methods import check_method, weigh
from mpad.inference.pipeline import Pipeline

SHARES = np.linspace(0.0, 1.0, 11)
_RANDOM_ORDERS = 5
_CHUNK = 1_000_000  # words predicted at a time
RANDOM = "random order"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Faithfulness:
    """Faithfulness of one order of parts over a dataset; errors are half-widths of 95 % intervals."""

    method: str
    unit: str
    documents: int
    deletion: float  # lower is better
    deletion_error: float
    insertion: float  # higher is better
    insertion_error: float
    gain: float  # sum of the improvements of both areas over the random order, on the same documents
    gain_error: float
    seconds: float  # CPU time per document
    deletion_curve: tuple[float, ...]  # mean probability at each of SHARES
    insertion_curve: tuple[float, ...]
    gains: tuple[float, ...]  # per document

    def lead(self, other: "Faithfulness") -> tuple[float, float]:
        """Return the mean difference of the gains to another on the same documents, and its error."""
        return mean_and_error(np.array(self.gains) - np.array(other.gains))


class _Measured(NamedTuple):
    """Curves and areas of all orders of the parts of one document."""

    curves: Floats  # (orders, 2, shares)
    areas: Floats  # (orders, 2)
    seconds: list[float]  # (methods,)


def mean_and_error(values: Floats) -> tuple[float, float]:
    """Return the mean over documents and the half-width of its 95 % interval."""
    return float(values.mean()), float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))


def measure(
    model: Pipeline,
    texts: Sequence[str],
    methods: Sequence[str],
    units: Sequence[str] = (WORD,),
    seed: int = 0,
    done: Callable[[], None] = lambda: None,
) -> list[Faithfulness]:
    """Measure the faithfulness of explanation methods.

    Parameters
    ----------
    model : Pipeline
        The model of a fitted classifier: `classifier.model_`.
    texts : sequence of str
        Documents; those with a single part of a unit are skipped for that unit.
    methods : sequence of str
        Names of methods; "occlusion by word" and "occlusion by occurrence" fix the unit that occlusion removes, which
        otherwise is the unit measured.
    units : sequence of {"word", "occurrence", "edge", "sentence"}, default=("word",)
        Parts to delete and insert.
    seed : int, default=0
        Seed of the random orders.
    done : callable, optional
        Called after each document.

    Returns
    -------
    list of Faithfulness
        Per unit, one per method, then one for the random order.

    Raises
    ------
    InputError
        For an unknown method or unit, or fewer than two documents.

    """
    parsed = [_parse_method(name) for name in methods]
    for unit in units:
        check_unit(unit)
    generator = np.random.default_rng(seed)
    measured: dict[str, list[_Measured]] = {unit: [] for unit in units}
    for text in texts:
        document = trace_document(model, text)
        column = int(model.answer(document.graphs).logits[0].argmax())
        weighed: dict[tuple[str, str], tuple[PartWeights, float]] = {}
        for unit in units:
            parts = Parts(document, unit)
            if len(parts) < 2:
                continue
            keys = [(method, fixed_unit or (unit if unit in WORD_UNITS else WORD)) for method, fixed_unit in parsed]
            for key in keys:
                if key not in weighed:
                    start = time.process_time()
                    weighed[key] = weigh(document, column, *key), time.process_time() - start
            orders = [np.argsort(-parts.weights(weighed[key][0]), kind="stable") for key in keys]
            orders += [generator.permutation(len(parts)) for _ in range(_RANDOM_ORDERS)]
            measured[unit].append(_Measured(*_curves(parts, column, orders), [weighed[key][1] for key in keys]))
        done()
    return [one for unit, own in measured.items() for one in _summarize(unit, [*methods, RANDOM], own)]


def best(measured: Sequence[Faithfulness]) -> Faithfulness:
    """Return the method with the largest gain over the random order."""
    return max((one for one in measured if one.method != RANDOM), key=lambda one: one.gain)


def _parse_method(name: str) -> tuple[str, str | None]:
    """Return the method, and the unit after "by", if any."""
    method, _, unit = name.partition(" by ")
    check_method(method)
    if unit:
        check_unit(unit, WORD_UNITS)
    return method, unit or None


def _curves(parts: Parts, column: int, orders: Sequence[NDArray[np.int64]]) -> tuple[Floats, Floats]:
    """Return curves (orders, 2, shares), deletion first, and areas (orders, 2).

    Documents with few parts have fewer distinct versions than shares; each version is predicted once.
    """
    n = len(parts)
    cuts, place = np.unique(np.rint(SHARES * n).astype(np.int64), return_inverse=True)
    kept = np.zeros((len(orders), 2, len(cuts), n), bool)
    for k, order in enumerate(orders):
        rank = np.empty(n, np.int64)
        rank[order] = np.arange(n)
        kept[k, 0], kept[k, 1] = rank >= cuts[:, None], rank < cuts[:, None]
    model, versions = parts.document.model, kept.reshape(-1, n)
    step = max(1, _CHUNK // max(len(parts.document.ids), n))
    probabilities = [
        model.labels.probabilities(model.answer(parts.keep(versions[start : start + step])).logits)[:, column]
        for start in range(0, len(versions), step)
    ]
    curves = np.concatenate(probabilities).reshape(len(orders), 2, len(cuts))
    return curves[:, :, place], np.asarray(np.trapezoid(curves, cuts / n, axis=-1))


def _summarize(unit: str, names: Sequence[str], measured: Sequence[_Measured]) -> list[Faithfulness]:
    """Return the faithfulness of each order; the random ones, which come last, count as one."""
    if len(measured) < 2:
        raise InputError(f"explanations are checked with at least two documents of at least two {unit}s")
    n = len(names) - 1
    curves, areas = (
        np.concatenate([part[:, :n], part[:, n:].mean(1, keepdims=True)], axis=1)
        for part in (np.array([one.curves for one in measured]), np.array([one.areas for one in measured]))
    )  # (documents, orders, 2, shares), (documents, orders, 2)
    mean_curves = curves.mean(0)
    seconds = [*np.mean([one.seconds for one in measured], axis=0).tolist(), 0.0]
    gains = (areas[:, -1:, 0] - areas[:, :, 0]) + (areas[:, :, 1] - areas[:, -1:, 1])
    return [
        Faithfulness(
            name,
            unit,
            len(areas),
            *mean_and_error(areas[:, k, 0]),
            *mean_and_error(areas[:, k, 1]),
            *mean_and_error(gains[:, k]),
            seconds=seconds[k],
            deletion_curve=tuple(mean_curves[k, 0].tolist()),
            insertion_curve=tuple(mean_curves[k, 1].tolist()),
            gains=tuple(gains[:, k].tolist()),
        )
        for k, name in enumerate(names)
    ]
