"""D⁻¹ A x and its transpose over a static batch: each row sums its incoming messages, in one pass, without atomics."""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad.kernels.cuda.kernel import kernel, strides, tile_of
from mpad.kernels.static_batch import StaticBatch, StaticCorpus
from mpad.model import segment_sum

_ROWS = 32


class StaticWordGraph(NamedTuple):
    """Word graphs of a static batch, whose nodes point into the edges of the whole corpus; indices are int32."""

    node: Tensor  # (models, words), node of the corpus, -1 for padding
    owner: Tensor  # (models, words), graph
    base: Tensor  # (models, graphs), first word
    size: Tensor  # (models, graphs), words
    incoming: Tensor  # (n_nodes + 1,), first edge into each node of the corpus
    source: Tensor  # (n_edges,), node of the edge's graph
    weight: Tensor  # (n_edges,)
    outgoing: Tensor  # (n_nodes + 1,), the same edges by their source
    target: Tensor  # (n_edges,)
    weight_out: Tensor  # (n_edges,)
    share: Tensor  # (n_nodes,), weight of the master in a word's mean
    master: bool
    renormalise: bool


_EDGES = "incoming", "source", "weight", "outgoing", "target", "weight_out", "share"


def word_graph(batch: StaticBatch, master: bool, mean: bool) -> StaticWordGraph:
    """Return the word graphs of a static batch."""
    edges = dict(zip(_EDGES, _corpus_edges(batch.corpus, master, mean), strict=True))
    places = batch.node, batch.owner_in_model, batch.base, batch.size_in_model
    return StaticWordGraph(*places, **edges, master=master, renormalise=mean)


def _corpus_edges(corpus: StaticCorpus, master: bool, mean: bool) -> tuple[Tensor, ...]:
    """Return the edges of a corpus by target and by source, divided by in-degrees; computed once per corpus."""
    if (master, mean) not in corpus.edges:
        of, n = corpus.tensors, len(corpus.words)
        begin = torch.repeat_interleave(of.first_node, of.n_edges)  # the first node of each edge's graph
        source, target, weight = of.source + begin, of.target + begin, of.weight
        share = weight.new_ones(n)
        if mean:
            degree = segment_sum(weight, target, n)
            share = 1.0 / (degree + 1.0) if master else 1.0 / degree.clamp(min=torch.finfo(weight.dtype).tiny)
            weight = weight * share[target]
        order = torch.argsort(source, stable=True)
        incoming = _starts(target, n), of.source.int(), weight
        corpus.edges[master, mean] = *incoming, _starts(source, n), of.target[order].int(), weight[order], share
    return corpus.edges[master, mean]


def _starts(index: Tensor, n: int) -> Tensor:
    counts = torch.bincount(index, minlength=n)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()


@triton.jit
def _master(
    x, x_row, node, base, size, share, real,
    MEAN: tl.constexpr, TRANSPOSED: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Sum what a master receives from the words of its graph; nothing for the dummy document."""
    column = tl.arange(0, BLOCK)
    begin, count = tl.load(base), tl.load(size) * real
    received = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, ROWS):
        k = start + tl.arange(0, ROWS)
        inside = (k < count)[:, None] & (column < D)[None, :]
        sent = tl.load(x + (begin + k)[:, None] * x_row + column[None, :], inside, 0.0)
        if TRANSPOSED:
            me = tl.load(node + begin + k, k < count, -1)
            sent *= tl.load(share + me, me >= 0, 1.0)[:, None]
        received += tl.sum(sent, 0)
    if MEAN and not TRANSPOSED:
        received *= 1.0 / tl.maximum(count, 1).to(tl.float32)
    return received


@kernel()
def _aggregate(
    x, x_slab, x_row, out, bias, bias_slab, node, owner, base, size, first, other, weight, share, n, g, rows,
    MASTER: tl.constexpr, MEAN: tl.constexpr, TRANSPOSED: tl.constexpr, RELU: tl.constexpr,
    D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    model, tile = tl.program_id(1).to(tl.int64), tl.program_id(0)
    column = tl.arange(0, BLOCK)
    in_row = column < D
    x += model * x_slab
    out += model * rows * D
    n_tiles = tl.cdiv(n, ROWS)
    if tile < n_tiles:  # words
        row = tile * ROWS + tl.arange(0, ROWS)
        inside = row < n
        me = tl.load(node + model * n + row, inside, -1)
        graph = tl.load(owner + model * n + row, inside, 0)
        real = me >= 0
        begin = tl.load(base + model * g + graph, inside, 0)
        edge = tl.load(first + me, real, 0)
        count = tl.load(first + me + 1, real, 0) - edge
        total = tl.zeros((ROWS, BLOCK), tl.float32)
        for k in range(tl.max(count, 0)):
            has = k < count
            u = begin + tl.load(other + edge + k, has, 0)
            w = tl.load(weight + edge + k, has, 0.0)
            total += w[:, None] * tl.load(x + u[:, None] * x_row + column[None, :], has[:, None] & in_row[None, :], 0.0)
        if MASTER:
            if TRANSPOSED:
                part = tl.full((ROWS,), 1.0, tl.float32)
                if MEAN:
                    part /= tl.maximum(tl.load(size + model * g + graph, inside, 1), 1).to(tl.float32)
                part = tl.where(graph < g - 1, part, 0.0)
            else:
                part = tl.load(share + me, real, 0.0)
            master = x + (n + graph)[:, None] * x_row + column[None, :]
            total += part[:, None] * tl.load(master, inside[:, None] & in_row[None, :], 0.0)
        if RELU:
            total = tl.maximum(total + tl.load(bias + model * bias_slab + column, in_row, 0.0)[None, :], 0.0)
        tl.store(out + row[:, None] * D + column[None, :], total, inside[:, None] & in_row[None, :])
    else:
        which = tile - n_tiles
        total_of = _master(x, x_row, node + model * n, base + model * g + which, size + model * g + which, share,
                           which < g - 1, MEAN, TRANSPOSED, D, BLOCK, ROWS)  # fmt: skip
        if RELU:
            total_of = tl.maximum(total_of + tl.load(bias + model * bias_slab + column, in_row, 0.0), 0.0)
        tl.store(out + (n + which) * D + column, total_of, in_row)


def aggregate(x: Tensor, graph: StaticWordGraph) -> Tensor:
    """Return D⁻¹ A x over the graphs of words of a static batch: (models, rows, width) → the same."""
    return _Aggregate.apply(x, graph)  # type: ignore[no-any-return]


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, graph: StaticWordGraph) -> Tensor:
        ctx.graph = graph
        return run(x, graph)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return run(gradients[0], ctx.graph, transposed=True), None


def run(x: Tensor, graph: StaticWordGraph, bias: Tensor | None = None, transposed: bool = False) -> Tensor:
    """Return D⁻¹ A x, or with a bias ReLU(D⁻¹ A x + b), or (D⁻¹ A)ᵀ x: (models, rows, width) → the same."""
    x = x if x.stride(-1) == 1 else x.contiguous()
    models, rows, width = x.shape
    n, g = graph.node.shape[1], graph.base.shape[1]
    if (models, rows) != (graph.node.shape[0], n + g * bool(graph.master)):
        raise ValueError(f"these graphs have {n} words and {g} master nodes a model, but x has shape {tuple(x.shape)}")
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    tile = tile_of(width, _ROWS)
    grid = triton.cdiv(n, tile[2]) + (g if graph.master else 0), models
    edges = graph[7:10] if transposed else graph[4:7]
    _aggregate[grid](
        x, *strides(x), out, *((x, 0) if bias is None else (bias, bias.stride(0))),
        graph.node, graph.owner, graph.base, graph.size, *edges, graph.share, n, g, rows,
        bool(graph.master), bool(graph.renormalise), transposed, bias is not None, *tile,
    )  # fmt: skip
    return out
