"""Drift between two sets of documents: unknown words, graph sizes, confidence and class shares."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.explain.document import trace_document
from mpad.inference.pipeline import Pipeline


@dataclass(frozen=True)
class Drift:
    """Comparison of one quantity over two sets of documents."""

    what: str
    first: float  # mean
    second: float  # mean
    difference: float
    error: float  # half-width of the 95 % interval of the difference

    @property
    def clear(self) -> bool:
        """True if the interval of the difference excludes zero."""
        return abs(self.difference) > self.error


def drift(model: Pipeline, first: Sequence[str], second: Sequence[str]) -> list[Drift]:
    """Compare two sets of documents as the model sees them.

    Parameters
    ----------
    model : Pipeline
        The model of a fitted classifier: `classifier.model_`.
    first, second : sequence of str
        At least two documents each.

    Returns
    -------
    list of Drift
        One per quantity; the share of each class comes last.

    Raises
    ------
    InputError
        If a set has fewer than two documents.

    """
    for name, texts in (("first", first), ("second", second)):
        if len(texts) < 2:
            raise InputError(f"drift compares sets of at least two documents; the {name} has {len(texts)}")
    a, b = _measure(model, first), _measure(model, second)
    return [_compare(what, a[what], b[what]) for what in a]


def _measure(model: Pipeline, texts: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    unknown, words = [], []
    for text in texts:
        tokens = trace_document(model, text).tokens.words
        words.append(len(tokens))
        unknown.append(np.mean([word not in model.vocabulary for word in tokens]) if tokens else 0.0)
    graphs = model.pack(texts)
    nodes = np.diff(graphs.node_start[graphs.document_start])
    edges = np.diff(graphs.edge_start[graphs.document_start])
    probabilities = model.predict_proba(texts)
    chosen = probabilities.argmax(1)
    quantities = {
        "share of unknown words": np.array(unknown),
        "words": np.array(words),
        "nodes of the graph": nodes,
        "edges of the graph": edges,
        "edges a node": edges / nodes.clip(min=1),
        "confidence": probabilities.max(1),
    }
    shares = {f"share of '{label}'": chosen == k for k, label in enumerate(model.labels.classes.tolist())}
    return {name: np.asarray(values, np.float64) for name, values in (quantities | shares).items()}


def _compare(what: str, a: NDArray[np.float64], b: NDArray[np.float64]) -> Drift:
    error = 1.96 * float(np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)))
    return Drift(what, float(a.mean()), float(b.mean()), float(b.mean() - a.mean()), error)
