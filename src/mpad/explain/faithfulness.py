"""How far explanations can be trusted: take words out in the order of their weights, and watch the answer.

Deletion: the words that weigh most go first; the better the order, the faster the label's probability falls. Insertion:
from an empty document they come first; the faster it rises. Both are areas under the curve of that probability over the
share of words (Petsiuk et al., 2018), beside those of words in random order.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.explain.document import TracedDocument, trace_document
from mpad.explain.methods import weigh
from mpad.pipeline.document_model import DocumentModel

SHARES = np.linspace(0.0, 1.0, 11)
_RANDOM_ORDERS = 5
_MOST_WORDS = 1_000_000  # read again at a time
RANDOM = "random order"


@dataclass(frozen=True)
class Faithfulness:
    """What came of one way to order words, over a dataset. Areas are between 0 and 1; ± is half of a 95 % interval."""

    method: str
    documents: int
    deletion: float  # lower is better
    deletion_error: float
    insertion: float  # higher is better
    insertion_error: float
    gain: float  # by how much both areas together are better than random order's, on the same documents
    gain_error: float
    seconds: float  # a document
    deletion_curve: tuple[float, ...]  # mean probability at each of SHARES
    insertion_curve: tuple[float, ...]


def measure(
    model: DocumentModel,
    texts: Sequence[str],
    methods: Sequence[str],
    seed: int = 0,
    done: Callable[[], None] = lambda: None,
) -> list[Faithfulness]:
    """Deletion and insertion of each method, and of random order last; documents of one word are left out."""
    generator = np.random.default_rng(seed)
    result: dict[str, list[NDArray[np.float64]]] = {method: [] for method in (*methods, RANDOM)}
    seconds = dict.fromkeys(result, 0.0)
    for text in texts:
        document = trace_document(model, text)
        n = len(document.ids)
        if n >= 2:
            column = int(model.answer(document.graphs).logits[0].argmax())
            orders = []
            for method in methods:
                start = time.perf_counter()
                orders.append(np.argsort(-weigh(document, column, method).words, kind="stable"))
                seconds[method] += time.perf_counter() - start
            orders += [generator.permutation(n) for _ in range(_RANDOM_ORDERS)]
            curves = _curves(document, column, orders)
            for method, curve in zip(methods, curves, strict=False):
                result[method].append(curve)
            result[RANDOM].append(curves[len(methods) :].mean(0))
        done()
    if len(result[RANDOM]) < 2:
        raise InputError("explanations are checked with at least two documents of at least two words")
    areas = {name: _areas(np.array(curves)) for name, curves in result.items()}
    return [
        _summary(name, np.array(result[name]), areas[name], areas[RANDOM], seconds[name] / len(result[name]))
        for name in result
    ]


def best(measured: Sequence[Faithfulness]) -> Faithfulness:
    """The method that gains most over random order."""
    return max((one for one in measured if one.method != RANDOM), key=lambda one: one.gain)


def _curves(document: TracedDocument, column: int, orders: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Probability of the class at each share, for each order: (orders, 2, shares), deletion first."""
    n = len(document.ids)
    cut = np.rint(SHARES * n).astype(np.int64)
    kept = np.zeros((len(orders), 2, len(cut), n), bool)
    for k, order in enumerate(orders):
        rank = np.empty(n, np.int64)
        rank[order] = np.arange(n)
        kept[k, 0], kept[k, 1] = rank >= cut[:, None], rank < cut[:, None]
    versions = kept.reshape(-1, n)
    probabilities = [
        document.model.labels.probabilities(document.model.answer(document.build(part)).logits)[:, column]
        for part in _chunks(versions)
    ]
    return np.concatenate(probabilities).reshape(len(orders), 2, len(cut))


def _chunks(versions: NDArray[np.bool_]) -> Iterator[NDArray[np.bool_]]:
    step = max(1, _MOST_WORDS // versions.shape[1])
    for start in range(0, len(versions), step):
        yield versions[start : start + step]


def _areas(curves: NDArray[np.float64]) -> NDArray[np.float64]:
    """(documents, 2, shares) → (documents, 2), by the trapezoid rule."""
    return np.asarray(np.trapezoid(curves, SHARES, axis=-1))


def _summary(
    name: str, curves: NDArray[np.float64], own: NDArray[np.float64], random: NDArray[np.float64], seconds: float
) -> Faithfulness:
    n = len(own)

    def error(x: NDArray[np.float64]) -> float:
        return float(1.96 * x.std(ddof=1) / np.sqrt(n))

    gain = (random[:, 0] - own[:, 0]) + (own[:, 1] - random[:, 1])
    deletion_curve, insertion_curve = curves.mean(0).tolist()
    return Faithfulness(
        method=name,
        documents=n,
        deletion=float(own[:, 0].mean()),
        deletion_error=error(own[:, 0]),
        insertion=float(own[:, 1].mean()),
        insertion_error=error(own[:, 1]),
        gain=float(gain.mean()),
        gain_error=error(gain),
        seconds=seconds,
        deletion_curve=tuple(deletion_curve),
        insertion_curve=tuple(insertion_curve),
    )
