"""Explanation by integrated gradients: how the answer grows while the words, or their edges, fade in.

Word rows go from nothing to what they are, x(α) = α x, and the label's log-odds F from F(0) to F(1); a word's weight
is ∫ x · ∂F/∂x(α) dα, its share of that growth (Sundararajan et al., 2017). Edges likewise: the words stand as they are,
and what every edge carries goes from nothing to all of it. So the weights of words add up to F − F(no words), those of
edges to F − F(silent edges): completeness, which is checked, with more points on the way where it does not hold.

A few dozen passes whatever the document's length, for all parts at once; unlike occlusion it sees words that say the
same twice.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from mpad.explain.document import TracedDocument
from mpad.explain.weights import PartWeights, Weights
from mpad.graph.batch import CorpusTensors, GraphBatch

_POINTS = (32, 128, 512)  # tried in turn until the weights add up
_GAP = 0.02  # of what they should add up to, or of one unit of log-odds
_CHUNK = 20_000  # nodes at a time


def gradient_weights(document: TracedDocument, column: int) -> PartWeights:
    """Integrated gradients of the log-odds of class `column` for each part; a sentence has the sum of its words."""
    document.model.network.eval()
    one = CorpusTensors(document.graphs, document.model.device)
    nodes, gap = _complete(lambda points: _words(document, one, column, points))
    edges, edge_gap = _complete(lambda points: _edges(document, one, column, points))
    occurrences = np.bincount(document.node_of, minlength=len(nodes)).clip(min=1)
    words = (nodes / occurrences)[document.node_of]
    sentences = np.bincount(document.sentence_of, words, minlength=document.n_sentences).astype(float)
    worst = max(gap, edge_gap)
    note = f"the weights miss what they should add up to by {worst:.2f}" if worst > _GAP else ""
    return PartWeights(words, edges, sentences, note)


def _complete(integrate: Callable[[int], tuple[Weights, float]]) -> tuple[Weights, float]:
    """Weights that add up, and how far they miss: a share of their sum, or of one where that is larger."""
    for points in _POINTS:
        weights, whole = integrate(points)
        gap = abs(float(weights.sum()) - whole) / max(abs(whole), 1.0)
        if gap <= _GAP:
            break
    return weights, gap


def _words(document: TracedDocument, one: CorpusTensors, column: int, points: int) -> tuple[Weights, float]:
    """Weight of each node, and F(words as they are) − F(no words)."""
    table = document.model.network.vectors.detach()[one.words.long()].float()

    def growth(alphas: Tensor, rows: Tensor) -> Tensor:
        return _log_odds(document, _faded(one, len(alphas)), column, rows)

    def slope(alphas: Tensor) -> Tensor:
        rows = (alphas[:, None, None] * table).flatten(0, 1).requires_grad_()
        (gradient,) = torch.autograd.grad(growth(alphas, rows).sum(), rows)
        return (gradient.view(len(alphas), *table.shape) * table).sum(-1)

    ends = torch.tensor([0.0, 1.0], device=table.device)
    with torch.no_grad():
        first, last = growth(ends, torch.cat([torch.zeros_like(table), table])).tolist()
    return _integral(slope, points, one), last - first


def _edges(document: TracedDocument, one: CorpusTensors, column: int, points: int) -> tuple[Weights, float]:
    """Weight of each edge, and F(all edges) − F(none)."""
    table = document.model.network.vectors.detach()[one.words.long()].float()

    def growth(alphas: Tensor, carried: Tensor) -> Tensor:
        batch = _faded(one, len(alphas))
        return _log_odds(document, batch, column, table.repeat(len(alphas), 1), carried)

    def slope(alphas: Tensor) -> Tensor:
        carried = alphas.repeat_interleave(len(one.weight)).requires_grad_()
        (gradient,) = torch.autograd.grad(growth(alphas, carried).sum(), carried)
        return gradient.view(len(alphas), -1)

    ends = torch.tensor([0.0, 1.0], device=table.device)
    with torch.no_grad():
        first, last = growth(ends, ends.repeat_interleave(len(one.weight))).tolist()
    return _integral(slope, points, one), last - first


def _faded(one: CorpusTensors, n: int) -> GraphBatch:
    """The document n times over, each node with a row of its own."""
    batch = one.take(torch.zeros(n, dtype=torch.int64, device=one.device))
    return replace(batch, words=torch.arange(batch.n_words, device=one.device))


def _log_odds(
    document: TracedDocument, batch: GraphBatch, column: int, rows: Tensor, edge_scale: Tensor | None = None
) -> Tensor:
    """Log p / (1 − p) of the class, of documents over these rows: (n_documents,)."""
    network = document.model.network
    logits: Tensor = functional_call(network, {"vectors": rows}, (batch, edge_scale)).logits.double()
    if document.model.labels.multilabel:
        return logits[:, column]
    others = torch.cat([logits[:, :column], logits[:, column + 1 :]], dim=1)
    return logits[:, column] - others.logsumexp(1)


def _integral(slope: Callable[[Tensor], Tensor], points: int, one: CorpusTensors) -> Weights:
    """The mean of the slope over points on the way, each in the middle of its stretch."""
    alphas = (torch.arange(points, device=one.device) + 0.5) / points
    total = sum(slope(part).double().sum(0) for part in alphas.split(max(1, _CHUNK // max(len(one.words), 1))))
    assert isinstance(total, Tensor)
    return np.asarray((total / points).cpu().numpy(), np.float64)
