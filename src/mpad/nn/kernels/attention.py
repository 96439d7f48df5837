"""Attention over the words of each graph: scores, softmax and weighted sum, and their derivatives."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mpad.nn.kernels.gate import _tanh
from mpad.nn.kernels.tiles import grid_of_rows, strides, tile_of

_ROWS = 32


@triton.jit
def _scores(
    y,
    bias,
    bias_slab,
    v,
    v_slab,
    score,
    rows,
    BIAS: tl.constexpr,
    BOUNDED: tl.constexpr,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (column < D)[None, :]
    at = y + (model * rows + row)[:, None] * D + column[None, :]
    aligned = tl.load(at, inside, 0.0)
    if BIAS:
        aligned += tl.load(bias + model * bias_slab + column, column < D, 0.0)[None, :]
    aligned = _tanh(aligned)
    tl.store(at, aligned, inside)
    s = tl.sum(aligned * tl.load(v + model * v_slab + column, column < D, 0.0)[None, :], 1)
    if BOUNDED:
        s = _tanh(s)
    tl.store(score + model * rows + row, s, row < rows)


@triton.jit
def _clear(x, rows, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """Write zeros over rows."""
    column = tl.arange(0, BLOCK)[None, :]
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)[:, None]
        tl.store(x + row * D + column, tl.zeros((ROWS, BLOCK), tl.float32), (row < rows) & (column < D))


@triton.jit
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


@triton.jit
def _pool_backward(
    d_pooled, d_slab, d_row, h, h_slab, h_row, y, v, v_slab, score, alpha, base, size, d_h, d_y, d_score, n, g,
    BOUNDED: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    model, graph = tl.program_id(1).to(tl.int64), tl.program_id(0)
    column = tl.arange(0, BLOCK)
    in_row = column < D
    begin, count = tl.load(base + model * g + graph), tl.load(size + model * g + graph)
    given = tl.load(d_pooled + model * d_slab + graph * d_row + column, in_row, 0.0)
    context = tl.load(v + model * v_slab + column, in_row, 0.0)
    h += model * h_slab + begin * h_row
    flat = model * n + begin
    if graph == g - 1:  # the dummy document
        _clear(d_score + flat, count, 1, 1, ROWS)
        _clear(d_h + flat * D, count, D, BLOCK, ROWS)
        _clear(d_y + flat * D, count, D, BLOCK, ROWS)
        count = count * 0
    k = tl.arange(0, ROWS)
    shared = tl.zeros((ROWS,), tl.float32)
    for start in range(0, count, ROWS):
        inside = start + k < count
        rows = tl.load(h + (start + k)[:, None] * h_row + column[None, :], inside[:, None] & in_row[None, :], 0.0)
        shared += tl.load(alpha + flat + start + k, inside, 0.0) * tl.sum(rows * given[None, :], 1)
    mean = tl.sum(shared, 0)
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
        tl.store(d_score + flat + start + k, d, inside)
        tl.store(d_y + at, d[:, None] * context[None, :] * (1.0 - aligned * aligned), both)
        tl.store(d_h + at, a[:, None] * given[None, :], both)


def attend(
    h: Tensor, y: Tensor, bias: Tensor | None, v: Tensor, base: Tensor, size: Tensor, bounded: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """H, H W_A → scores and α (models, words), u (models, graphs, width); y becomes tanh(H W_A + b)."""
    models, n, width = h.shape
    g = base.shape[1]
    score, alpha = y.new_empty(models, n), y.new_empty(models, n)
    pooled = y.new_empty(models, g, width)
    tile = tile_of(width, _ROWS)
    _scores[grid_of_rows(h, tile[2])](
        y,
        *((v, 0) if bias is None else (bias, bias.stride(0))),
        v,
        v.stride(0),
        score,
        n,
        bias is not None,
        bounded,
        *tile,
    )
    _pool[(g, models)](h, *strides(h), score, base, size, alpha, pooled, n, g, *tile)
    return score, alpha, pooled


def attend_backward(
    d_pooled: Tensor,
    h: Tensor,
    y: Tensor,
    v: Tensor,
    score: Tensor,
    alpha: Tensor,
    base: Tensor,
    size: Tensor,
    bounded: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of H (all but its way through y), of H W_A + b, and of the scores."""
    models, n, width = h.shape
    g = base.shape[1]
    d_h, d_y = (torch.empty(h.shape, dtype=h.dtype, device=h.device) for _ in range(2))
    d_score = torch.empty_like(score)
    _pool_backward[(g, models)](
        d_pooled, *strides(d_pooled), h, *strides(h), y, v, v.stride(0), score, alpha, base, size, d_h, d_y, d_score,
        n, g, bounded, *tile_of(width, _ROWS),
    )  # fmt: skip
    return d_h, d_y, d_score
