"""Attention over the words of each graph: scores, softmax and weighted sum, and their derivatives."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad.kernels.cuda import zeros
from mpad.kernels.cuda.gate import WIDEST, precision, product, product_back, tanh, weight
from mpad.kernels.cuda.kernel import grid_of_rows, kernel, matrix, per_model, strides, tile_of
from mpad.kernels.cuda.linear import weight_gradient

_ROWS = 32


@kernel()
def _scores(
    h, h_slab, h_row, w, w_slab, y, bias, bias_slab, v, v_slab, score, rows,
    BIAS: tl.constexpr, BOUNDED: tl.constexpr, MAPS: tl.constexpr, PRECISION: tl.constexpr,
    D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (column < D)[None, :]
    at = y + (model * rows + row)[:, None] * D + column[None, :]
    if MAPS:
        x = tl.load(h + model * h_slab + row[:, None] * h_row + column[None, :], inside, 0.0)
        aligned = product(x, weight(w + model * w_slab, 0, D, BLOCK), tl.zeros((ROWS, BLOCK), tl.float32), PRECISION)
    else:
        aligned = tl.load(at, inside, 0.0)
    if BIAS:
        aligned += tl.load(bias + model * bias_slab + column, column < D, 0.0)[None, :]
    aligned = tanh(aligned)
    tl.store(at, aligned, inside)
    s = tl.sum(aligned * tl.load(v + model * v_slab + column, column < D, 0.0)[None, :], 1)
    if BOUNDED:
        s = tanh(s)
    tl.store(score + model * rows + row, s, row < rows)


@triton.jit
def _clear(x, rows, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """Write zeros over rows."""
    column = tl.arange(0, BLOCK)[None, :]
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)[:, None]
        tl.store(x + row * D + column, tl.zeros((ROWS, BLOCK), tl.float32), (row < rows) & (column < D))


@kernel()
def _pool(
    h, h_slab, h_row, score, base, size, alpha, pooled, n, g, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr
):
    model, graph = tl.program_id(1).to(tl.int64), tl.program_id(0)
    column = tl.arange(0, BLOCK)
    begin, count = tl.load(base + model * g + graph), tl.load(size + model * g + graph)
    if graph == g - 1:  # the dummy document
        _clear(alpha + model * n + begin, count, 1, 1, ROWS)
        count = count * 0
    score += model * n + begin
    alpha += model * n + begin
    h += model * h_slab + begin * h_row
    k = tl.arange(0, ROWS)
    highest = tl.full((ROWS,), -float("inf"), tl.float32)
    for start in range(0, count, ROWS):
        highest = tl.maximum(highest, tl.load(score + start + k, start + k < count, -float("inf")))
    top = tl.max(highest, 0)
    parts = tl.zeros((ROWS,), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, ROWS):
        inside = start + k < count
        e = tl.where(inside, tl.exp(tl.load(score + start + k, inside, 0.0) - top), 0.0)
        parts += e
        rows = tl.load(h + (start + k)[:, None] * h_row + column[None, :], inside[:, None] & (column < D)[None, :], 0.0)
        total += tl.sum(e[:, None] * rows, 0)
    whole = tl.sum(parts, 0)
    scale = 1.0 / tl.where(count > 0, whole, 1.0)
    for start in range(0, count, ROWS):
        inside = start + k < count
        e = tl.exp(tl.load(score + start + k, inside, 0.0) - top)
        tl.store(alpha + start + k, e * scale, inside)
    tl.store(pooled + (model * g + graph) * D + column, total * scale, column < D)


@kernel()
def _pool_backward(
    d_pooled, d_slab, d_row, h, h_slab, h_row, w, w_slab, y, v, v_slab,
    score, alpha, base, size, d_h, d_y, d_v, n, g,
    BOUNDED: tl.constexpr, MAPS: tl.constexpr, PRECISION: tl.constexpr,
    D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    model, graph = tl.program_id(1).to(tl.int64), tl.program_id(0)
    column = tl.arange(0, BLOCK)
    in_row = column < D
    begin, count = tl.load(base + model * g + graph), tl.load(size + model * g + graph)
    given = tl.load(d_pooled + model * d_slab + graph * d_row + column, in_row, 0.0)
    context = tl.load(v + model * v_slab + column, in_row, 0.0)
    h += model * h_slab + begin * h_row
    flat = model * n + begin
    d_h += flat * D
    if graph == g - 1:  # the dummy document
        _clear(d_h, count, D, BLOCK, ROWS)
        _clear(d_y + flat * D, count, D, BLOCK, ROWS)
        count = count * 0
    k = tl.arange(0, ROWS)
    shared = tl.zeros((ROWS,), tl.float32)
    for start in range(0, count, ROWS):
        inside = start + k < count
        rows = tl.load(h + (start + k)[:, None] * h_row + column[None, :], inside[:, None] & in_row[None, :], 0.0)
        shared += tl.load(alpha + flat + start + k, inside, 0.0) * tl.sum(rows * given[None, :], 1)
    mean = tl.sum(shared, 0)
    to_v = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, ROWS):
        inside = start + k < count
        both = inside[:, None] & in_row[None, :]
        a = tl.load(alpha + flat + start + k, inside, 0.0)
        rows = tl.load(h + (start + k)[:, None] * h_row + column[None, :], both, 0.0)
        d = a * (tl.sum(rows * given[None, :], 1) - mean)
        if BOUNDED:
            s = tl.load(score + flat + start + k, inside, 0.0)
            d *= 1.0 - s * s
        at = (flat + start + k)[:, None] * D + column[None, :]
        aligned = tl.load(y + at, both, 0.0)
        to_v += tl.sum(d[:, None] * aligned, 0)
        to_y = d[:, None] * context[None, :] * (1.0 - aligned * aligned)
        to_h = a[:, None] * given[None, :]
        if MAPS:
            to_h = product_back(to_y, weight(w + model * w_slab, 0, D, BLOCK), to_h, PRECISION)
        tl.store(d_y + at, to_y, both)
        tl.store(d_h + (start + k)[:, None] * D + column[None, :], to_h, both)
    tl.atomic_add(d_v + model * D + column, to_v, in_row, sem="relaxed")


def attention(
    h: Tensor, base: Tensor, size: Tensor, align: Tensor, bias: Tensor | None, context: Tensor, bounded: bool
) -> tuple[Tensor, Tensor]:
    """Attend over runs of rows of a static batch, which start at `base` (models, groups) and are `size` long.

    h: (models, rows, width) → u: (models, groups, width), α: (models · rows,). The last group is the dummy document.
    """
    return _Attention.apply(h, base, size, align, bias, context, bounded)  # type: ignore[no-any-return]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, base: Tensor, size: Tensor, w: Tensor, bias: Tensor | None, v: Tensor, bounded: bool
    ) -> tuple[Tensor, Tensor]:
        models, n, width = h.shape
        g, maps = base.shape[1], width <= WIDEST
        y = h.new_empty(h.shape) if maps else h @ w.mT
        score, alpha = y.new_empty(models, n), y.new_empty(models, n)
        pooled = y.new_empty(models, g, width)
        tile = tile_of(width, _ROWS)
        _scores[grid_of_rows(h, tile[2])](
            h, *strides(h), *matrix(w), y, *per_model(v if bias is None else bias), v, v.stride(0), score, n,
            bias is not None, bounded, maps, precision(), *tile,
        )  # fmt: skip
        _pool[(g, models)](h, *strides(h), score, base, size, alpha, pooled, n, g, *tile)
        ctx.save_for_backward(h, w, y, v, score, alpha, base, size)
        ctx.has_bias, ctx.bounded = bias is not None, bounded
        flat = alpha.flatten()
        ctx.mark_non_differentiable(flat)
        return pooled, flat

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        h, w, y, v, score, alpha, base, size = ctx.saved_tensors
        models, n, width = y.shape
        g, maps = base.shape[1], width <= WIDEST
        d_h, d_y = torch.empty(h.shape, dtype=h.dtype, device=h.device), torch.empty_like(y)
        d_v = zeros(h, v.shape)
        given = gradients[0] if gradients[0].stride(-1) == 1 else gradients[0].contiguous()
        _pool_backward[(g, models)](
            given, *strides(given), h, *strides(h), *matrix(w), y, v, v.stride(0), score, alpha, base, size,
            d_h, d_y, d_v, n, g, ctx.bounded, maps, precision(), *tile_of(width, _ROWS),
        )  # fmt: skip
        if not maps:
            d_h.baddbmm_(d_y, w)
        d_w, d_bias = weight_gradient(d_y, h, ctx.has_bias)
        return d_h, None, None, d_w, d_bias, d_v, None
