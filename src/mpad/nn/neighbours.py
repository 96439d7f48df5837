"""Who sends messages to whom: D⁻¹ A H of equation 4, without ever forming D or A.

Three kinds of graph, each a linear map over rows with its transpose: for each row the weighted mean of its incoming
neighbours' rows (their weighted sum, without renormalisation).
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from mpad.graph.batch import GraphBatch, renormalised
from mpad.graph.planned import PlannedBatch
from mpad.nn import compiled, kernels
from mpad.nn.compiled import neighbours as by_graphs
from mpad.nn.segments import segment_sum


class Neighbours(Protocol):
    """A graph over rows. Both maps are ([models,] rows, width) → the same, and know nothing of gradients."""

    @property
    def counted(self) -> Tensor | None:
        """(models, rows, 1), 0 for rows that only fill up a slab; None where all rows count."""
        ...

    def heard(self, x: Tensor) -> Tensor:
        """D⁻¹ A x, what each row hears."""
        ...

    def heard_relu(self, x: Tensor, bias: Tensor) -> Tensor:
        """ReLU(D⁻¹ A x + b)."""
        ...

    def transposed(self, g: Tensor) -> Tensor:
        """(D⁻¹ A)ᵀ g, the gradient of `heard`."""
        ...


def bias_relu_(x: Tensor, bias: Tensor) -> Tensor:
    """ReLU(x + b), in place."""
    if kernels.run_on(x):
        from mpad.nn.kernels.relu import bias_relu_ as on_gpu

        return on_gpu(x, bias)
    return x.add_(bias.unsqueeze(-2)).relu_()


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


def word_neighbours(batch: GraphBatch | PlannedBatch, master: bool, renormalise: bool) -> Neighbours:
    """The graph of words of a batch."""
    if isinstance(batch, PlannedBatch):
        from mpad.nn.kernels.aggregate import WordNeighbours as OnGPU

        return OnGPU(batch, master, renormalise)
    return WordNeighbours(batch, master, renormalise)


class WordNeighbours:
    """The graph of words, its rows the words of the batch followed, if there is a master, by one row a graph.

    word v:   (Σ w(u→v) · x_u + x_master) / (Σ w(u→v) + 1)
    master:   (Σ x_v over the words of its graph) / (number of words)

    Without a master its terms vanish; without renormalisation the denominators do. A row that nobody sends to
    gets zeros. With several models, each slab of rows has its own words first and its own masters last.

    `passed_on` (n_edges,) scales what an edge carries, denominators as they are: explanations silence edges by it.
    """

    def __init__(self, batch: GraphBatch, master: bool, renormalise: bool, passed_on: Tensor | None = None) -> None:
        self._n, weight = batch.words.shape[0] // batch.n_models, batch.weight
        if not renormalise:
            share, part = weight.new_ones(batch.words.shape[0]), weight.new_ones(batch.n_graphs)
        elif compiled.takes(weight):
            weight, share, part = by_graphs.shares(batch.target, batch.size, weight, batch.words.shape[0], master)
        else:
            weight, share = renormalised(weight, batch.target, batch.words.shape[0], master)
            part = 1.0 / batch.size.clamp(min=1).to(weight.dtype)
        self._source, self._target = batch.source, batch.target
        if passed_on is not None:
            weight = weight * passed_on
        self._weight = weight[:, None]  # (n_edges, 1), divided by the target's degree
        self._owner = batch.owner if master else None
        self._share = share[:, None]  # (n_nodes, 1), what its master's row counts for a word
        self._part = part[:, None]  # (n_graphs, 1), what a word's row counts for its master
        arrays = batch.size, batch.source, batch.target, weight, share, part
        self._edges = by_graphs.Edges(arrays, self._n, master) if batch.n_models == 1 else None
        self.counted: Tensor | None = None
        if batch.slabs is not None:
            slabs = batch.slabs
            self.counted = torch.cat([slabs.words, slabs.graphs], dim=1) if master else slabs.words

    def heard(self, x: Tensor) -> Tensor:
        """D⁻¹ A x."""
        if self._edges is not None and compiled.run_on(x):
            return by_graphs.mean(self._edges, x)
        (words, masters), (y_words, y_masters), y = self._cut(x), *self._room(x)
        if self._owner is None:
            y_words.zero_()
        else:
            torch.mul(masters.index_select(0, self._owner), self._share, out=y_words)
            y_masters.zero_().index_add_(0, self._owner, words).mul_(self._part)
        y_words.index_add_(0, self._target, words.index_select(0, self._source).mul_(self._weight))
        return self._joined(y_words, y_masters, y)

    def heard_relu(self, x: Tensor, bias: Tensor) -> Tensor:
        """ReLU(D⁻¹ A x + b)."""
        if self._edges is not None and compiled.run_on(x):
            return by_graphs.mean(self._edges, x, bias)
        return bias_relu_(self.heard(x), bias)

    def transposed(self, g: Tensor) -> Tensor:
        """(D⁻¹ A)ᵀ g."""
        if self._edges is not None and compiled.run_on(g):
            return by_graphs.mean(self._edges, g, back=True)
        (words, masters), (x_words, x_masters), x = self._cut(g), *self._room(g)
        if self._owner is None:
            x_words.zero_()
        else:
            torch.index_select(masters * self._part, 0, self._owner, out=x_words)
            x_masters.zero_().index_add_(0, self._owner, words * self._share)
        x_words.index_add_(0, self._source, words.index_select(0, self._target).mul_(self._weight))
        return self._joined(x_words, x_masters, x)

    def in_c(self, x: Tensor) -> by_graphs.Graph | None:
        """As whole rounds take it."""
        return None if self._edges is None else self._edges.in_c(x)

    def _cut(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of all words, and those of all masters."""
        words, masters = x.split((self._n, x.shape[-2] - self._n), dim=-2)
        return (words, masters) if x.ndim == 2 else (words.flatten(0, 1), masters.flatten(0, 1))

    def _room(self, x: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor | None]:
        """Where to write the rows of words and masters: of one model, right into the result."""
        if x.ndim == 2:
            y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
            return (y[: self._n], y[self._n :]), y
        models, rows, width = x.shape
        return (x.new_empty(models * self._n, width), x.new_empty(models * (rows - self._n), width)), None

    def _joined(self, words: Tensor, masters: Tensor, y: Tensor | None) -> Tensor:
        if y is not None:
            return y
        models, width = words.shape[0] // self._n, words.shape[1]
        return torch.cat([words.view(models, -1, width), masters.view(models, -1, width)], dim=1)


class Clique:
    """A complete graph over the sentences of each document: (Σ x of the document − x itself) / (sentences − 1).

    Its matrix is symmetric. A document's only sentence hears zeros.
    """

    def __init__(self, batch: GraphBatch | PlannedBatch, renormalise: bool) -> None:
        self._batch, self._renormalise = batch, renormalise
        self._sizes = sentences_alone(batch)
        self.counted = None if batch.slabs is None else batch.slabs.graphs

    @cached_property
    def _divisor(self) -> Tensor:
        others = (self._batch.graph_count - 1).clamp(min=1)
        return others.index_select(0, self._batch.graph_owner)[:, None]

    def heard(self, x: Tensor) -> Tensor:
        """D⁻¹ A x."""
        if self._sizes is not None and compiled.takes(x):
            return by_graphs.among(self._sizes, x, by_graphs.CLIQUE, self._renormalise)
        rows, owner = x.flatten(0, -2), self._batch.graph_owner
        total = segment_sum(rows, owner, self._batch.n_documents).index_select(0, owner).sub_(rows)
        return (total.div_(self._divisor) if self._renormalise else total).view(x.shape)

    def heard_relu(self, x: Tensor, bias: Tensor) -> Tensor:
        """ReLU(D⁻¹ A x + b)."""
        if self._sizes is not None and compiled.takes(x):
            return by_graphs.among(self._sizes, x, by_graphs.CLIQUE, self._renormalise, bias)
        return bias_relu_(self.heard(x), bias)

    def transposed(self, g: Tensor) -> Tensor:
        """(D⁻¹ A)ᵀ g."""
        return self.heard(g)

    def in_c(self, x: Tensor) -> by_graphs.Graph | None:
        """As whole rounds take it."""
        sizes, n, kind = self._sizes, self._batch.n_graphs, by_graphs.CLIQUE
        return None if sizes is None else by_graphs.among_in_c(sizes, n, x, kind, self._renormalise)


class Path:
    """A path through the sentences of each document: each hears the one before it, the first nobody."""

    def __init__(self, batch: GraphBatch | PlannedBatch) -> None:
        self._batch, self._sizes = batch, sentences_alone(batch)
        self.counted = None if batch.slabs is None else batch.slabs.graphs

    @cached_property
    def _follows(self) -> Tensor:
        owner = self._batch.graph_owner
        follows = torch.zeros_like(owner, dtype=torch.bool)
        follows[1:] = owner[1:] == owner[:-1]
        return follows[:, None]

    def heard(self, x: Tensor) -> Tensor:
        """D⁻¹ A x."""
        if self._sizes is not None and compiled.takes(x):
            return by_graphs.among(self._sizes, x, by_graphs.PATH, True)
        return x.flatten(0, -2).roll(1, 0).mul_(self._follows).view(x.shape)

    def heard_relu(self, x: Tensor, bias: Tensor) -> Tensor:
        """ReLU(D⁻¹ A x + b)."""
        if self._sizes is not None and compiled.takes(x):
            return by_graphs.among(self._sizes, x, by_graphs.PATH, True, bias)
        return bias_relu_(self.heard(x), bias)

    def transposed(self, g: Tensor) -> Tensor:
        """(D⁻¹ A)ᵀ g."""
        if self._sizes is not None and compiled.takes(g):
            return by_graphs.among(self._sizes, g, by_graphs.PATH_BACK, True)
        return (g.flatten(0, -2) * self._follows).roll(-1, 0).view(g.shape)

    def in_c(self, x: Tensor) -> by_graphs.Graph | None:
        """As whole rounds take it."""
        sizes, n = self._sizes, self._batch.n_graphs
        return None if sizes is None else by_graphs.among_in_c(sizes, n, x, by_graphs.PATH, True)


def in_c(neighbours: Neighbours, h: Tensor, weights: Sequence[Tensor | None]) -> by_graphs.Graph | None:
    """The graph as whole rounds over such rows, with such weights, take it; None where they run pass by pass."""
    if not isinstance(neighbours, WordNeighbours | Clique | Path) or not compiled.run_on(h, weights):
        return None
    return neighbours.in_c(h)


def sentences_alone(batch: GraphBatch | PlannedBatch) -> Tensor | None:
    """Sentences of each document, where no other model's stand beside them."""
    return batch.graph_count if isinstance(batch, GraphBatch) and batch.n_models == 1 else None
