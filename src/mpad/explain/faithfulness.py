"""How far explanations can be trusted: take parts out in the order of their weights, and watch the answer.

Deletion: the parts that weigh most go first; the better the order, the faster the label's probability falls. Insertion:
from a document without them they come first; the faster it rises. Both are areas under the curve of that probability
over the share of parts (Petsiuk et al., 2018), beside those of parts in random order. Parts are words, occurrences of
words, edges of the graph or sentences: the same for every method.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.explain.document import TracedDocument, trace_document
from mpad.explain.methods import check_method, weigh
from mpad.explain.units import WORD, WORD_UNITS, Parts, check_unit
from mpad.explain.weights import PartWeights
from mpad.pipeline.document_model import DocumentModel

SHARES = np.linspace(0.0, 1.0, 11)
_RANDOM_ORDERS = 5
_MOST_WORDS = 1_000_000  # read again at a time
RANDOM = "random order"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Faithfulness:
    """What came of one way to order parts, over a dataset. Areas are between 0 and 1; ± is half of a 95 % interval."""

    method: str
    unit: str
    documents: int
    deletion: float  # lower is better
    deletion_error: float
    insertion: float  # higher is better
    insertion_error: float
    gain: float  # by how much both areas together are better than random order's, on the same documents
    gain_error: float
    seconds: float  # of CPU time, to explain all parts of a document
    deletion_curve: tuple[float, ...]  # mean probability at each of SHARES
    insertion_curve: tuple[float, ...]
    gains: tuple[float, ...]  # of each document

    def lead(self, other: "Faithfulness") -> tuple[float, float]:
        """By how much it gains more than another on the same documents, and half of the 95 % interval of that."""
        return mean_and_error(np.array(self.gains) - np.array(other.gains))


def mean_and_error(values: Floats) -> tuple[float, float]:
    """The mean over documents, and half of its 95 % interval."""
    return float(values.mean()), float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))


def measure(
    model: DocumentModel,
    texts: Sequence[str],
    methods: Sequence[str],
    units: Sequence[str] = (WORD,),
    seed: int = 0,
    done: Callable[[], None] = lambda: None,
) -> list[Faithfulness]:
    """Deletion and insertion of each method, and of random order last, unit by unit.

    A method is a name, or "occlusion by word" and "occlusion by occurrence" for what occlusion takes out at a time;
    without that it is the unit measured. Documents with a single part of a unit are left out of it.
    """
    ways = {name: _way(name) for name in methods}
    for unit in units:
        check_unit(unit)
    generator = np.random.default_rng(seed)
    measured = {unit: _Measured([*methods, RANDOM]) for unit in units}
    for text in texts:
        document = trace_document(model, text)
        column = int(model.answer(document.graphs).logits[0].argmax())
        weighed: dict[tuple[str, str], tuple[PartWeights, float]] = {}
        for unit in units:
            parts = Parts(document, unit)
            if len(parts) < 2:
                continue
            orders = []
            for name, (method, own) in ways.items():
                key = method, own or (unit if unit in WORD_UNITS else WORD)
                if key not in weighed:
                    start = time.process_time()
                    weighed[key] = weigh(document, column, *key), time.process_time() - start
                weights, seconds = weighed[key]
                measured[unit].seconds[name].append(seconds)
                orders.append(np.argsort(-parts.weights(weights), kind="stable"))
            orders += [generator.permutation(len(parts)) for _ in range(_RANDOM_ORDERS)]
            measured[unit].add(*_curves(parts, column, orders))
        done()
    return [one for unit, result in measured.items() for one in result.summaries(unit)]


def best(measured: Sequence[Faithfulness]) -> Faithfulness:
    """The method that gains most over random order."""
    return max((one for one in measured if one.method != RANDOM), key=lambda one: one.gain)


def _way(name: str) -> tuple[str, str | None]:
    """A method, and what it takes out at a time where its name says so."""
    method, _, unit = name.partition(" by ")
    check_method(method)
    if unit:
        check_unit(unit, WORD_UNITS)
    return method, unit or None


def _curves(parts: Parts, column: int, orders: Sequence[NDArray[np.int64]]) -> tuple[Floats, Floats]:
    """Curves at each share, for each order: (orders, 2, shares), deletion first; and areas: (orders, 2).

    Few parts leave fewer points than there are shares: each version is read once, and areas are over what has gone.
    """
    n = len(parts)
    cuts, place = np.unique(np.rint(SHARES * n).astype(np.int64), return_inverse=True)
    kept = np.zeros((len(orders), 2, len(cuts), n), bool)
    for k, order in enumerate(orders):
        rank = np.empty(n, np.int64)
        rank[order] = np.arange(n)
        kept[k, 0], kept[k, 1] = rank >= cuts[:, None], rank < cuts[:, None]
    model = parts.document.model
    probabilities = [
        model.labels.probabilities(model.answer(parts.keep(part)).logits)[:, column]
        for part in _chunks(kept.reshape(-1, n), parts.document)
    ]
    curves = np.concatenate(probabilities).reshape(len(orders), 2, len(cuts))
    return curves[:, :, place], np.asarray(np.trapezoid(curves, cuts / n, axis=-1))


def _chunks(versions: NDArray[np.bool_], document: TracedDocument) -> Iterator[NDArray[np.bool_]]:
    step = max(1, _MOST_WORDS // max(len(document.ids), versions.shape[1]))
    for start in range(0, len(versions), step):
        yield versions[start : start + step]


class _Measured:
    """Curves and areas of each way to order one unit's parts, document by document; random order comes last."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.curves: list[Floats] = []
        self.areas: list[Floats] = []
        self.seconds: dict[str, list[float]] = {name: [] for name in names}

    def add(self, curves: Floats, areas: Floats) -> None:
        """Keep those of a document, the random orders as their mean."""
        n = len(self.names) - 1
        for kept, new in ((self.curves, curves), (self.areas, areas)):
            kept.append(np.concatenate([new[:n], new[n:].mean(0, keepdims=True)]))

    def summaries(self, unit: str) -> list[Faithfulness]:
        """One for each way."""
        if len(self.areas) < 2:
            raise InputError(f"explanations are checked with at least two documents of at least two {unit}s")
        areas, curves = np.array(self.areas), np.array(self.curves).mean(0)  # (documents, ways, 2), (ways, 2, shares)
        gains = (areas[:, -1:, 0] - areas[:, :, 0]) + (areas[:, :, 1] - areas[:, -1:, 1])
        return [
            Faithfulness(
                name,
                unit,
                len(areas),
                *mean_and_error(areas[:, k, 0]),
                *mean_and_error(areas[:, k, 1]),
                *mean_and_error(gains[:, k]),
                seconds=float(np.mean(self.seconds[name] or 0.0)),
                deletion_curve=tuple(curves[k, 0].tolist()),
                insertion_curve=tuple(curves[k, 1].tolist()),
                gains=tuple(gains[:, k].tolist()),
            )
            for k, name in enumerate(self.names)
        ]
