"""Share of a model's decisions that comes from pairs of words, the edges of its graphs.

The decision on a document is the lead of the label over the runner-up: the difference of their logits. The linear part
states the contributions of words and pairs to it. The network's contribution is measured by deletion: all edges are
removed from the graph, and the document is predicted again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.graph.packed import with_edges
from mpad.inference.pipeline import Pipeline
from mpad.linear.potentials import part_documents

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PairShare:
    """Shares of word pairs, over a set of documents."""

    documents: int
    linear: float | None  # Σ|pairs| / (Σ|words| + Σ|pairs|) of the contributions to the lead; None without linear part
    model: float  # share of the summed leads that is lost without edges; negative if edges oppose the labels
    network: float  # the same share for the network without the linear part, for the same two classes
    changed: float  # share of documents whose label changes without edges


def pair_share(model: Pipeline, texts: Sequence[str]) -> PairShare:
    """Return the share of the decisions on these texts that comes from pairs of words.

    Parameters
    ----------
    model : Pipeline
        The model of a fitted single-label classifier: `classifier.model_`.
    texts : sequence of str
        At least one document.

    Returns
    -------
    PairShare
        Shares in the linear part, the whole model and the network, and the share of changed labels.

    Raises
    ------
    InputError
        If the model is multi-label or has one class, or there are no texts.

    """
    if model.labels.multilabel or len(model.labels) < 2:
        raise InputError("the share of pairs is measured for single-label models of at least two classes")
    if not len(texts):
        raise InputError("the share of pairs is measured on at least one document")
    network_only = replace(model, potentials=None)
    leads, linear, changed = np.zeros((2, 2)), np.zeros(2), 0
    for graphs in model.packs(texts):
        edgeless = with_edges(graphs, np.zeros((1, len(graphs.source)), bool))
        logits, without = model.answer(graphs).logits, model.answer(edgeless).logits
        order = logits.argsort(1)
        label, second = order[:, -1], order[:, -2]
        changed += int((without.argmax(1) != label).sum())
        leads[0] += _lead(logits, label, second).sum(), _lead(without, label, second).sum()
        leads[1] += [_lead(network_only.answer(one).logits, label, second).sum() for one in (graphs, edgeless)]
        if model.potentials is not None:
            shares = zip(model.potentials.shares(graphs), part_documents(graphs), strict=True)
            linear += [np.abs(_lead(share, label[owner], second[owner])).sum() for share, owner in shares]
    whole, network = ((before - after) / before if before else 0.0 for before, after in leads.tolist())
    words, pairs = linear.tolist()
    exact = None if model.potentials is None else pairs / max(words + pairs, 1e-9)
    return PairShare(len(texts), exact, whole, network, changed / len(texts))


def _lead(scores: NDArray[np.float32], label: NDArray[np.int64], second: NDArray[np.int64]) -> Floats:
    rows = np.arange(len(scores))
    return scores[rows, label].astype(np.float64) - scores[rows, second]
