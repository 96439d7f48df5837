"""Who sends messages to whom: D⁻¹ A H of equation 4, without ever forming D or A.

Three kinds of graph, each with one method, `mean`: rows in, for each row the weighted mean of its incoming
neighbours' rows out (their weighted sum, without renormalisation). All of them are linear in the rows.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from mpad.graph.batch import GraphBatch
from mpad.nn.segments import segment_sum


class Neighbours(Protocol):
    """A graph over rows."""

    def mean(self, x: Tensor) -> Tensor:
        """D⁻¹ A x: (rows, width) → (rows, width)."""
        ...


class WordNeighbours:
    """The graph of words, its rows the words of the batch followed, if there is a master, by one row a graph.

    word v:   (Σ w(u→v) · x_u + x_master) / (Σ w(u→v) + 1)
    master:   (Σ x_v over the words of its graph) / (number of words)

    Without a master its terms vanish; without renormalisation the denominators do. A row that nobody sends to
    gets zeros.
    """

    def __init__(self, batch: GraphBatch, master: bool, renormalise: bool) -> None:
        n_nodes, weight = batch.words.shape[0], batch.weight
        share, part = weight.new_ones(n_nodes), weight.new_ones(batch.n_graphs)
        if renormalise:
            degree = weight.new_zeros(n_nodes).index_add_(0, batch.target, weight)
            share = 1.0 / (degree + 1.0) if master else 1.0 / degree.clamp(min=torch.finfo(weight.dtype).tiny)
            part = 1.0 / batch.size.clamp(min=1).to(weight.dtype)
            weight = weight * share[batch.target]
        owner = batch.owner if master else None
        self._links = _Links(batch.source, batch.target, weight[:, None], owner, share[:, None], part[:, None])

    def mean(self, x: Tensor) -> Tensor:
        """D⁻¹ A x: (n_nodes [+ n_graphs], width) → the same shape."""
        mean: Tensor = _Mean.apply(x.to(torch.promote_types(x.dtype, torch.float32)), self._links)  # type: ignore[no-untyped-call]
        return mean


@dataclass(frozen=True)
class _Links:
    source: Tensor  # (n_edges,)
    target: Tensor  # (n_edges,)
    weight: Tensor  # (n_edges, 1), divided by the target's degree
    owner: Tensor | None  # (n_nodes,) graph of each node; None: no master
    share: Tensor  # (n_nodes, 1) what its master's row counts for a word
    part: Tensor  # (n_graphs, 1) what a word's row counts for its master


class _Mean(torch.autograd.Function):
    """y = S x and its gradient Sᵀ g, neither of which keeps a row per edge in memory."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, links: _Links) -> Tensor:
        ctx.links = links
        y = torch.zeros_like(x)
        words = y[: links.share.shape[0]]
        if links.owner is not None:
            n = words.shape[0]
            torch.mul(x[n:].index_select(0, links.owner), links.share, out=words)
            y[n:].index_add_(0, links.owner, x[:n]).mul_(links.part)
        words.index_add_(0, links.target, x.index_select(0, links.source).mul_(links.weight))
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (g,), links = gradients, ctx.links
        x = torch.zeros_like(g)
        words = x[: links.share.shape[0]]
        if links.owner is not None:
            n = words.shape[0]
            torch.index_select(g[n:] * links.part, 0, links.owner, out=words)
            x[n:].index_add_(0, links.owner, g[:n] * links.share)
        words.index_add_(0, links.source, g.index_select(0, links.target).mul_(links.weight))
        return x, None


class Clique:
    """A complete graph over the sentences of each document: (Σ x of the document − x itself) / (sentences − 1)."""

    def __init__(self, batch: GraphBatch, renormalise: bool) -> None:
        self._owner, self._n_documents = batch.graph_owner, batch.n_documents
        others = (batch.graph_count - 1).clamp(min=1)[batch.graph_owner]
        self._divisor = others[:, None] if renormalise else None

    def mean(self, x: Tensor) -> Tensor:
        """D⁻¹ A x: (n_graphs, width) → the same shape; a document's only sentence gets zeros."""
        total = segment_sum(x, self._owner, self._n_documents)[self._owner] - x
        return total if self._divisor is None else total / self._divisor


class Path:
    """A path through the sentences of each document: each hears the one before it, the first nobody."""

    def __init__(self, batch: GraphBatch) -> None:
        owner = batch.graph_owner
        self._follows = torch.zeros_like(owner, dtype=torch.bool)
        self._follows[1:] = owner[1:] == owner[:-1]

    def mean(self, x: Tensor) -> Tensor:
        """D⁻¹ A x: (n_graphs, width) → the same shape."""
        return x.roll(1, 0) * self._follows[:, None]
