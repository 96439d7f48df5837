"""How much of a model's decisions the pairs of words carry: the edges of its graphs.

The decision on a document is the lead of the label over the runner-up: the difference of their logits. What words and
pairs add to it in the linear part are numbers of the model. The network's part is measured by deletion: all edges are
taken out of the graph, the words stay, and the document is read again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.graph.packed import with_edges
from mpad.linear.potentials import part_documents
from mpad.pipeline.document_model import DocumentModel

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PairShare:
    """Shares over a set of documents."""

    documents: int
    linear: float | None  # Σ|pairs| / (Σ|words| + Σ|pairs|) of what each adds to the lead in the linear part, if any
    model: float  # of the sum of leads, the share that goes with all edges; below 0 where edges speak against labels
    network: float  # the same of the network alone: its lead of the model's label over the model's runner-up
    changed: float  # share of documents that get another label without edges


def pair_share(model: DocumentModel, texts: Sequence[str]) -> PairShare:
    """How much of the decisions on these texts pairs of words carry."""
    if model.labels.multilabel or len(model.labels) < 2:
        raise InputError("what pairs carry is measured for models of one label a document, of at least two classes")
    if not len(texts):
        raise InputError("what pairs carry is measured on at least one document")
    alone = replace(model, potentials=None)
    leads, linear, changed = np.zeros((2, 2)), np.zeros(2), 0
    for graphs in model.packs(texts):
        silent = with_edges(graphs, np.zeros((1, len(graphs.source)), bool))
        logits, without = model.answer(graphs).logits, model.answer(silent).logits
        order = logits.argsort(1)
        label, second = order[:, -1], order[:, -2]
        changed += int((without.argmax(1) != label).sum())
        leads[0] += _lead(logits, label, second).sum(), _lead(without, label, second).sum()
        leads[1] += [_lead(alone.answer(one).logits, label, second).sum() for one in (graphs, silent)]
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
