"""D⁻¹ A x and its transpose: each row sums what it hears, in one pass, without atomics."""

from functools import cached_property

import torch
import triton
import triton.language as tl
from torch import Tensor

from mpad.graph.planned import PlannedBatch
from mpad.nn.kernels.tiles import strides, tile_of

_ROWS = 32


@triton.jit
def _master(
    x, x_row, node, base, size, share, real,
    MEAN: tl.constexpr, TRANSPOSED: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """What one master hears of the words of its graph; the dummy document's, nothing."""
    column = tl.arange(0, BLOCK)
    begin, count = tl.load(base), tl.load(size) * real
    heard = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, ROWS):
        k = start + tl.arange(0, ROWS)
        inside = (k < count)[:, None] & (column < D)[None, :]
        told = tl.load(x + (begin + k)[:, None] * x_row + column[None, :], inside, 0.0)
        if TRANSPOSED:
            me = tl.load(node + begin + k, k < count, -1)
            told *= tl.load(share + me, me >= 0, 1.0)[:, None]
        heard += tl.sum(told, 0)
    if MEAN and not TRANSPOSED:
        heard *= 1.0 / tl.maximum(count, 1).to(tl.float32)
    return heard


@triton.jit
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
            else:
                part = tl.load(share + me, real, 1.0)
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


class WordNeighbours:
    """The graph of words of a planned batch; see nn.neighbours for its equation."""

    def __init__(self, batch: PlannedBatch, master: bool, renormalise: bool) -> None:
        self._batch, self._master, self._mean = batch, master, renormalise
        self._edges = batch.corpus.edges(master, renormalise)

    @cached_property
    def counted(self) -> Tensor:
        """(models, rows, 1), 0 for rows that only fill up a slab."""
        slabs = self._batch.slabs
        return torch.cat([slabs.words, slabs.graphs], dim=1) if self._master else slabs.words

    def heard(self, x: Tensor) -> Tensor:
        """D⁻¹ A x."""
        return self._run(x, None, transposed=False)

    def heard_relu(self, x: Tensor, bias: Tensor) -> Tensor:
        """ReLU(D⁻¹ A x + b)."""
        return self._run(x, bias, transposed=False)

    def transposed(self, g: Tensor) -> Tensor:
        """(D⁻¹ A)ᵀ g."""
        return self._run(g, None, transposed=True)

    def _run(self, x: Tensor, bias: Tensor | None, transposed: bool) -> Tensor:
        batch, edges = self._batch, self._edges
        models, rows, width = x.shape
        n, g = batch.node.shape[1], batch.base.shape[1]
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        tile = tile_of(width, _ROWS)
        grid = triton.cdiv(n, tile[2]) + (g if self._master else 0), models
        side = edges.outgoing if transposed else edges.incoming
        _aggregate[grid](
            x, *strides(x), out, *((x, 0) if bias is None else (bias, bias.stride(0))),
            batch.node, batch.owner_in_slab, batch.base, batch.size_in_slab, *side, edges.share, n, g, rows,
            self._master, self._mean, transposed, bias is not None, *tile,
        )  # fmt: skip
        return out
