"""Explanation by integrated gradients: how the answer grows while the words, or their edges, fade in.

Word rows go from nothing to what they are, x(α) = α x, and the label's log-odds F from F(0) to F(1); a word's weight
is ∫ x · ∂F/∂x(α) dα, its share of that growth (Sundararajan et al., 2017). Edges likewise: the words stand as they are,
and what every edge carries goes from nothing to all of it. So the weights of words add up to F − F(no words), those of
edges to F − F(silent edges): completeness, which is checked, with more points on the way where it does not hold.
The linear part of a model fades in and out with them; what it adds of a weight is told apart (`potential`).

A few dozen passes whatever the document's length, for all parts at once; unlike occlusion it sees words that say the
same twice.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

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
    linear = _linear_part(document, one)
    nodes, gap = _complete(lambda points: _words(document, one, linear, column, points))
    edges, edge_gap = _complete(lambda points: _edges(document, one, linear, column, points))
    occurrences = np.bincount(document.node_of, minlength=len(nodes.weights)).clip(min=1)
    words, potentials = ((part / occurrences)[document.node_of] for part in (nodes.weights, nodes.potentials))
    sentences = np.bincount(document.sentence_of, words, minlength=document.n_sentences).astype(float)
    worst = max(gap, edge_gap)
    note = f"the weights miss what they should add up to by {worst:.2f}" if worst > _GAP else ""
    if document.model.potentials is None:
        return PartWeights(words, edges.weights, sentences, note, growth=nodes.whole)
    return PartWeights(words, edges.weights, sentences, note, potentials, edges.potentials, nodes.whole)


class _Linear(NamedTuple):
    """What the linear part adds to the logits; nothing of a model without one."""

    nodes: Tensor  # (nodes, classes), a word's own potential and half of those of its pairs
    edges: Tensor  # (edges, classes)
    constant: Tensor  # (classes,)
    network: float  # what the network's logits are multiplied by

    @property
    def words(self) -> Tensor:
        """What the words add without their pairs: (classes,)."""
        return self.nodes.sum(0) - self.edges.sum(0)


class _Integrated(NamedTuple):
    weights: Weights  # of each part
    potentials: Weights  # what the linear part adds of them
    whole: float  # what the weights should add up to


def _linear_part(document: TracedDocument, one: CorpusTensors) -> _Linear:
    classes = len(document.model.labels)
    device = one.device
    potentials = document.model.potentials
    if potentials is None:
        nothing = torch.zeros(len(one.words), classes, dtype=torch.float64, device=device)
        return _Linear(nothing, nothing.new_zeros(len(one.weight), classes), nothing.new_zeros(classes), 1.0)
    nodes, edges = (part.astype(np.float64) for part in potentials.shares(document.graphs))
    for ends in document.edge_nodes:
        np.add.at(nodes, ends, edges / 2)
    parts = [torch.from_numpy(part).to(device) for part in (nodes, edges, potentials.constant.astype(np.float64))]
    return _Linear(parts[0], parts[1], parts[2], float(potentials.network))


def _complete(integrate: Callable[[int], _Integrated]) -> tuple[_Integrated, float]:
    """Weights that add up, and how far they miss: a share of their sum, or of one where that is larger."""
    for points in _POINTS:
        result = integrate(points)
        gap = abs(float(result.weights.sum()) - result.whole) / max(abs(result.whole), 1.0)
        if gap <= _GAP:
            break
    return result, gap


def _words(document: TracedDocument, one: CorpusTensors, linear: _Linear, column: int, points: int) -> _Integrated:
    """Weight of each node; they add up to F(words as they are) − F(no words)."""
    table = document.model.node_rows(document.graphs).float()
    all_words = linear.words + linear.edges.sum(0)

    def growth(alphas: Tensor, rows: Tensor, added: Tensor) -> Tensor:
        return _log_odds(document, _faded(one, len(alphas)), column, linear, rows, added)

    def slope(alphas: Tensor) -> tuple[Tensor, Tensor]:
        rows = (alphas[:, None, None] * table).flatten(0, 1).requires_grad_()
        added = (alphas[:, None] * all_words).requires_grad_()
        by_row, by_class = torch.autograd.grad(growth(alphas, rows, added).sum(), [rows, added])
        return (by_row.view(len(alphas), *table.shape) * table).sum(-1), by_class @ linear.nodes.T

    ends = torch.tensor([0.0, 1.0], device=table.device)
    with torch.no_grad():
        none = torch.cat([torch.zeros_like(table), table])
        first, last = growth(ends, none, ends[:, None] * all_words).tolist()
    return _integral(slope, points, one, last - first)


def _edges(document: TracedDocument, one: CorpusTensors, linear: _Linear, column: int, points: int) -> _Integrated:
    """Weight of each edge; they add up to F(all edges) − F(none)."""
    table = document.model.node_rows(document.graphs).float()
    all_edges = linear.edges.sum(0)

    def growth(alphas: Tensor, carried: Tensor, added: Tensor) -> Tensor:
        batch = _faded(one, len(alphas))
        return _log_odds(document, batch, column, linear, table.repeat(len(alphas), 1), added, carried)

    def slope(alphas: Tensor) -> tuple[Tensor, Tensor]:
        carried = alphas.repeat_interleave(len(one.weight)).requires_grad_()
        added = (linear.words + alphas[:, None] * all_edges).requires_grad_()
        by_edge, by_class = torch.autograd.grad(growth(alphas, carried, added).sum(), [carried, added])
        return by_edge.view(len(alphas), -1), by_class @ linear.edges.T

    ends = torch.tensor([0.0, 1.0], device=table.device)
    with torch.no_grad():
        added = linear.words + ends[:, None] * all_edges
        first, last = growth(ends, ends.repeat_interleave(len(one.weight)), added).tolist()
    return _integral(slope, points, one, last - first)


def _faded(one: CorpusTensors, n: int) -> GraphBatch:
    """The document n times over, each node with a row of its own."""
    batch = one.take(torch.zeros(n, dtype=torch.int64, device=one.device))
    return replace(batch, words=torch.arange(batch.n_words, device=one.device))


def _log_odds(
    document: TracedDocument,
    batch: GraphBatch,
    column: int,
    linear: _Linear,
    rows: Tensor,
    added: Tensor,
    edge_scale: Tensor | None = None,
) -> Tensor:
    """Log p / (1 − p) of the class, of documents over these rows; `added` is the linear part's: (n_documents,)."""
    network = document.model.network
    own: Tensor = network(batch, edge_scale, rows).logits.double()
    logits = linear.network * own + linear.constant + added
    if document.model.labels.multilabel:
        return logits[:, column]
    others = torch.cat([logits[:, :column], logits[:, column + 1 :]], dim=1)
    return logits[:, column] - others.logsumexp(1)


def _integral(
    slope: Callable[[Tensor], tuple[Tensor, Tensor]], points: int, one: CorpusTensors, whole: float
) -> _Integrated:
    """The mean of both slopes over points on the way, each in the middle of its stretch."""
    alphas = (torch.arange(points, device=one.device) + 0.5) / points
    slopes = [slope(part) for part in alphas.split(max(1, _CHUNK // max(len(one.words), 1)))]
    network, potentials = (
        np.asarray((sum(part[which].double().sum(0) for part in slopes) / points).cpu().numpy(), np.float64)  # type: ignore[union-attr]
        for which in (0, 1)
    )
    return _Integrated(network + potentials, potentials, whole)
