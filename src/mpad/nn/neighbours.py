"""Who sends messages to whom: D⁻¹ A H of equation 4, without ever forming D or A.

Three kinds of graph, each a linear map over rows with its transpose: for each row the weighted mean of its incoming
neighbours' rows (their weighted sum, without renormalisation).
"""

from typing import Any, Protocol

import torch
from torch import Tensor

from mpad.graph.batch import GraphBatch
from mpad.nn.segments import segment_sum


class Neighbours(Protocol):
    """A graph over rows. Both maps are (rows, width) → (rows, width) and know nothing of gradients."""

    def heard(self, x: Tensor) -> Tensor:
        """D⁻¹ A x, what each row hears."""
        ...

    def transposed(self, g: Tensor) -> Tensor:
        """(D⁻¹ A)ᵀ g, the gradient of `heard`."""
        ...


def mean(neighbours: Neighbours, x: Tensor) -> Tensor:
    """D⁻¹ A x with its gradient: (rows, width) → (rows, width)."""
    heard: Tensor = _Mean.apply(x.to(torch.promote_types(x.dtype, torch.float32)), neighbours)  # type: ignore[no-untyped-call]
    return heard


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, neighbours: Neighbours) -> Tensor:
        ctx.neighbours = neighbours
        return neighbours.heard(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.neighbours.transposed(gradients[0]), None


class WordNeighbours:
    """The graph of words, its rows the words of the batch followed, if there is a master, by one row a graph.

    word v:   (Σ w(u→v) · x_u + x_master) / (Σ w(u→v) + 1)
    master:   (Σ x_v over the words of its graph) / (number of words)

    Without a master its terms vanish; without renormalisation the denominators do. A row that nobody sends to
    gets zeros.
    """

    def __init__(self, batch: GraphBatch, master: bool, renormalise: bool) -> None:
        self._n, weight = batch.words.shape[0], batch.weight
        share, part = weight.new_ones(self._n), weight.new_ones(batch.n_graphs)
        if renormalise:
            degree = weight.new_zeros(self._n).index_add_(0, batch.target, weight)
            share = 1.0 / (degree + 1.0) if master else 1.0 / degree.clamp(min=torch.finfo(weight.dtype).tiny)
            part = 1.0 / batch.size.clamp(min=1).to(weight.dtype)
            weight = weight * share.index_select(0, batch.target)
        self._source, self._target = batch.source, batch.target
        self._weight = weight[:, None]  # (n_edges, 1), divided by the target's degree
        self._owner = batch.owner if master else None
        self._share = share[:, None]  # (n_nodes, 1), what its master's row counts for a word
        self._part = part[:, None]  # (n_graphs, 1), what a word's row counts for its master

    def heard(self, x: Tensor) -> Tensor:
        """D⁻¹ A x."""
        y, n = torch.empty(x.shape, dtype=x.dtype, device=x.device), self._n
        if self._owner is None:
            y.zero_()
        else:
            torch.mul(x[n:].index_select(0, self._owner), self._share, out=y[:n])
            y[n:].zero_().index_add_(0, self._owner, x[:n]).mul_(self._part)
        y[:n].index_add_(0, self._target, x.index_select(0, self._source).mul_(self._weight))
        return y

    def transposed(self, g: Tensor) -> Tensor:
        """(D⁻¹ A)ᵀ g."""
        x, n = torch.empty(g.shape, dtype=g.dtype, device=g.device), self._n
        if self._owner is None:
            x.zero_()
        else:
            torch.index_select(g[n:] * self._part, 0, self._owner, out=x[:n])
            x[n:].zero_().index_add_(0, self._owner, g[:n] * self._share)
        x[:n].index_add_(0, self._source, g.index_select(0, self._target).mul_(self._weight))
        return x


class Clique:
    """A complete graph over the sentences of each document: (Σ x of the document − x itself) / (sentences − 1).

    Its matrix is symmetric. A document's only sentence hears zeros.
    """

    def __init__(self, batch: GraphBatch, renormalise: bool) -> None:
        self._owner, self._n_documents = batch.graph_owner, batch.n_documents
        others = (batch.graph_count - 1).clamp(min=1).index_select(0, batch.graph_owner)
        self._divisor = others[:, None] if renormalise else None

    def heard(self, x: Tensor) -> Tensor:
        """D⁻¹ A x."""
        total = segment_sum(x, self._owner, self._n_documents).index_select(0, self._owner).sub_(x)
        return total if self._divisor is None else total.div_(self._divisor)

    def transposed(self, g: Tensor) -> Tensor:
        """(D⁻¹ A)ᵀ g."""
        return self.heard(g)


class Path:
    """A path through the sentences of each document: each hears the one before it, the first nobody."""

    def __init__(self, batch: GraphBatch) -> None:
        owner = batch.graph_owner
        follows = torch.zeros_like(owner, dtype=torch.bool)
        follows[1:] = owner[1:] == owner[:-1]
        self._follows = follows[:, None]

    def heard(self, x: Tensor) -> Tensor:
        """D⁻¹ A x."""
        return x.roll(1, 0).mul_(self._follows)

    def transposed(self, g: Tensor) -> Tensor:
        """(D⁻¹ A)ᵀ g."""
        return (g * self._follows).roll(-1, 0)
