"""Explanation by integrated gradients: the growth of the log-odds as words, or edges, fade in.

Word rows are scaled from zero to their values, x(α) = α x, and the label's log-odds F go from F(0) to F(1). The weight
of a word is ∫ x · ∂F/∂x(α) dα, its share of that growth (Sundararajan et al., 2017). For edges, the words stay as they
are and the messages along all edges are scaled. The weights of words add up to F − F(no words), those of edges to
F − F(no messages). This completeness is checked, and the integral is refined with more points until it holds. The
linear part is scaled along; its part of a weight is reported separately (`potential`).

The cost is a few dozen passes for all parts at once, whatever the length of the document. Unlike occlusion, synonyms
share the credit.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mpad.explain.document import PartWeights, TracedDocument, Weights
from mpad.graph.batch import CorpusTensors, GraphBatch

_POINTS = (32, 128, 512)  # tried in turn until the weights add up
_GAP = 0.02  # tolerated error, as a share of the sum or of one unit of log-odds
_CHUNK = 20_000  # nodes at a time


def gradient_weights(document: TracedDocument, column: int) -> PartWeights:
    """Return the integrated gradients of the log-odds of class `column`; a sentence has the sum of its words."""
    document.model.network.eval()
    one = CorpusTensors(document.graphs, document.model.network.device)
    linear = _linear_terms(document, one)
    nodes, gap = _refine(lambda points: _integrate_words(document, one, linear, column, points))
    edges, edge_gap = _refine(lambda points: _integrate_edges(document, one, linear, column, points))
    occurrences = np.bincount(document.node_of, minlength=len(nodes.weights)).clip(min=1)
    words, potentials = ((part / occurrences)[document.node_of] for part in (nodes.weights, nodes.potentials))
    sentences = np.bincount(document.sentence_of, words, minlength=document.n_sentences).astype(float)
    worst = max(gap, edge_gap)
    note = f"the weights miss their expected sum by {worst:.2f}" if worst > _GAP else ""
    if document.model.potentials is None:
        return PartWeights(words, edges.weights, sentences, note, growth=nodes.whole)
    return PartWeights(words, edges.weights, sentences, note, potentials, edges.potentials, nodes.whole)


class _Linear(NamedTuple):
    """Contributions of the linear part to the logits; zeros for a model without one."""

    nodes: Tensor  # (nodes, classes), potential of the word plus half of those of its pairs
    edges: Tensor  # (edges, classes)
    constant: Tensor  # (classes,)
    network: float  # factor of the network's logits

    @property
    def words(self) -> Tensor:
        """Contribution of the words without their pairs: (classes,)."""
        return self.nodes.sum(0) - self.edges.sum(0)


class _Integrated(NamedTuple):
    weights: Weights  # per part
    potentials: Weights  # part of the weights from the linear part
    whole: float  # expected sum of the weights


def _linear_terms(document: TracedDocument, one: CorpusTensors) -> _Linear:
    classes = len(document.model.labels)
    device = one.device
    potentials = document.model.potentials
    if potentials is None:
        zeros = torch.zeros(len(one.words), classes, dtype=torch.float64, device=device)
        return _Linear(zeros, zeros.new_zeros(len(one.weight), classes), zeros.new_zeros(classes), 1.0)
    nodes, edges = (part.astype(np.float64) for part in potentials.shares(document.graphs))
    for ends in document.edge_nodes:
        np.add.at(nodes, ends, edges / 2)
    parts = [torch.from_numpy(part).to(device) for part in (nodes, edges, potentials.constant.astype(np.float64))]
    return _Linear(parts[0], parts[1], parts[2], float(potentials.network))


def _refine(integrate: Callable[[int], _Integrated]) -> tuple[_Integrated, float]:
    """Integrate with more points until the weights add up; return them and their relative error."""
    for points in _POINTS:
        result = integrate(points)
        gap = abs(float(result.weights.sum()) - result.whole) / max(abs(result.whole), 1.0)
        if gap <= _GAP:
            break
    return result, gap


def _integrate_words(
    document: TracedDocument, one: CorpusTensors, linear: _Linear, column: int, points: int
) -> _Integrated:
    """Return the weight of each node; they add up to F − F(no words)."""
    table = document.model.network.node_rows(document.graphs)
    all_words = linear.words + linear.edges.sum(0)

    def growth(alphas: Tensor, rows: Tensor, added: Tensor) -> Tensor:
        return _log_odds(document, _repeat(one, len(alphas)), column, linear, rows, added)

    def slope(alphas: Tensor) -> tuple[Tensor, Tensor]:
        rows = (alphas[:, None, None] * table).flatten(0, 1).requires_grad_()
        added = (alphas[:, None] * all_words).requires_grad_()
        by_row, by_class = torch.autograd.grad(growth(alphas, rows, added).sum(), [rows, added])
        return (by_row.view(len(alphas), *table.shape) * table).sum(-1), by_class @ linear.nodes.T

    ends = torch.tensor([0.0, 1.0], device=table.device)
    with torch.no_grad():
        rows = torch.cat([torch.zeros_like(table), table])
        first, last = growth(ends, rows, ends[:, None] * all_words).tolist()
    return _average_slopes(slope, points, one, last - first)


def _integrate_edges(
    document: TracedDocument, one: CorpusTensors, linear: _Linear, column: int, points: int
) -> _Integrated:
    """Return the weight of each edge; they add up to F − F(no messages)."""
    table = document.model.network.node_rows(document.graphs)
    all_edges = linear.edges.sum(0)

    def growth(alphas: Tensor, carried: Tensor, added: Tensor) -> Tensor:
        batch = _repeat(one, len(alphas))
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
    return _average_slopes(slope, points, one, last - first)


def _repeat(one: CorpusTensors, n: int) -> GraphBatch:
    """Return a batch of n copies of the document, each node with its own row."""
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
    """Return log p / (1 − p) of the class for these word rows, (documents,); `added` comes from the linear part."""
    network = document.model.network
    output: Tensor = network(batch, edge_scale, rows).logits.double()
    logits = linear.network * output + linear.constant + added
    if document.model.labels.multilabel:
        return logits[:, column]
    others = torch.cat([logits[:, :column], logits[:, column + 1 :]], dim=1)
    return logits[:, column] - others.logsumexp(1)


def _average_slopes(
    slope: Callable[[Tensor], tuple[Tensor, Tensor]], points: int, one: CorpusTensors, whole: float
) -> _Integrated:
    """Return the mean of both gradients over the midpoints of equal intervals."""
    alphas = (torch.arange(points, device=one.device) + 0.5) / points
    slopes = [slope(part) for part in alphas.split(max(1, _CHUNK // max(len(one.words), 1)))]
    network, potentials = (
        np.asarray((sum(part[which].double().sum(0) for part in slopes) / points).cpu().numpy(), np.float64)  # type: ignore[union-attr]
        for which in (0, 1)
    )
    return _Integrated(network + potentials, potentials, whole)
