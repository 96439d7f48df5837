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

from mpad.explain.document import PartWeights, TracedDocument, Weights, log_odds
from mpad.graph.batch import CorpusTensors

_POINTS = (32, 128, 512)  # tried in turn until the weights add up
_GAP = 0.02  # tolerated error, as a share of the sum or of one unit of log-odds
_CHUNK = 20_000  # nodes at a time


def gradient_weights(document: TracedDocument, column: int) -> PartWeights:
    """Return the integrated gradients of the log-odds of class `column`; a sentence has the sum of its words."""
    document.model.network.eval()
    one = CorpusTensors(document.graphs, document.model.network.device)
    linear = _linear_terms(document, one)
    nodes, gap = _refine(lambda points: _integrate(document, one, linear, column, points))
    edges, edge_gap = _refine(lambda points: _integrate(document, one, linear, column, points, over_edges=True))
    words, potentials = map(document.spread_nodes, (nodes.weights, nodes.potentials))
    sentences = document.sum_sentences(words)
    worst = max(gap, edge_gap)
    note = f"the weights miss their expected sum by {worst:.2f}" if worst > _GAP else ""
    if document.model.potentials is None:
        return PartWeights(words, edges.weights, sentences, note, growth=nodes.whole)
    return PartWeights(words, edges.weights, sentences, note, potentials, edges.potentials, nodes.whole)


def growth(document: TracedDocument, column: int) -> float:
    """Return the rise of the log-odds of class `column` from the document with empty words to the document."""
    document.model.network.eval()
    one = CorpusTensors(document.graphs, document.model.network.device)
    return _integrate(document, one, _linear_terms(document, one), column, points=1).whole


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


def _integrate(
    document: TracedDocument, one: CorpusTensors, linear: _Linear, column: int, points: int, over_edges: bool = False
) -> _Integrated:
    """Return the weight of each node, which add up to F − F(no words), or of each edge, up to F − F(no messages)."""
    network, multilabel = document.model.network, document.model.labels.multilabel
    table = network.node_rows(document.graphs)
    potentials = linear.edges if over_edges else linear.nodes
    every_edge = linear.edges.sum(0)
    fixed, fading = (linear.words, every_edge) if over_edges else (0.0, linear.words + every_edge)

    def grow(scales: Tensor, added: Tensor) -> Tensor:
        """Return F of versions of the document; (versions, parts) and, from the linear part, (versions, classes)."""
        batch = one.take(torch.zeros(len(scales), dtype=torch.int64, device=one.device))
        batch = replace(batch, words=torch.arange(batch.n_words, device=one.device))  # each node has its own row
        rows = table.repeat(len(scales), 1)
        if over_edges:
            output = network(batch, scales.flatten(), rows)
        else:
            output = network(batch, None, scales.flatten()[:, None] * rows)
        return log_odds(
            linear.network * output.logits.double() + linear.constant + added, column, multilabel, document.against
        )

    def slopes(alphas: Tensor) -> tuple[Tensor, Tensor]:
        scales = alphas[:, None].repeat(1, len(potentials)).requires_grad_()
        added = (fixed + alphas[:, None] * fading).requires_grad_()
        by_part, by_class = torch.autograd.grad(grow(scales, added).sum(), [scales, added])
        return by_part, by_class @ potentials.T

    ends = torch.tensor([[0.0], [1.0]], dtype=table.dtype, device=one.device)
    with torch.no_grad():
        first, last = grow(ends.repeat(1, len(potentials)), fixed + ends * fading).tolist()
    alphas = ((torch.arange(points, device=one.device) + 0.5) / points).to(table.dtype)  # midpoints of equal intervals
    parts = [slopes(some) for some in alphas.split(max(1, _CHUNK // max(len(one.words), 1)))]
    of_network, of_linear = (torch.cat(part).double().mean(0).cpu().numpy() for part in zip(*parts, strict=True))
    return _Integrated(of_network + of_linear, of_linear, last - first)
