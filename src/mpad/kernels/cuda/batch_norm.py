"""Batch norm of stacked models over the rows that count: sums in one pass, the rest in another."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from mpad.kernels.cuda import zeros
from mpad.kernels.cuda.kernel import grid_of_rows, kernel, per_model, tile_of

_ROWS = 32


@kernel()
def _sums(
    x, mask, shift, before, before_slab, sums, rows,
    BEFORE: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Sum x − shift and its squares over the rows that count, and count them: (models, 3, width)."""
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (column < D)[None, :]
    c = tl.load(mask + model * rows + row, row < rows, 0.0)[:, None]
    s = _running(shift, before, before_slab, model, column, BEFORE, D)[None, :]
    value = (tl.load(x + (model * rows + row)[:, None] * D + column[None, :], inside, 0.0) - s) * c
    at = sums + model * 3 * D + column
    tl.atomic_add(at, tl.sum(value, 0), column < D, sem="relaxed")
    tl.atomic_add(at + D, tl.sum(value * value, 0), column < D, sem="relaxed")
    tl.atomic_add(at + 2 * D, tl.sum(c + column[None, :] * 0.0, 0), column < D, sem="relaxed")


@triton.jit
def _running(running_mean, before, before_slab, model, column, BEFORE: tl.constexpr, D: tl.constexpr):
    """Return the running mean without the bias that the input lacks."""
    mean = tl.load(running_mean + model * D + column, column < D, 0.0)
    if BEFORE:
        mean -= tl.load(before + model * before_slab + column, column < D, 0.0)
    return mean


@triton.jit
def _statistics(
    sums, running_mean, running_var, before, before_slab, model, column, eps, BEFORE: tl.constexpr, D: tl.constexpr
):
    """Return mean and 1/√(var + ε) for normalization, the batch's unbiased variance, and whether it has one."""
    at = sums + model * 3 * D + column
    inside = column < D
    n = tl.maximum(tl.load(at + 2 * D, inside, 1.0), 1.0)
    enough = n >= 2.0
    off = tl.load(at, inside, 0.0) / n
    var = tl.maximum(tl.load(at + D, inside, 0.0) / n - off * off, 0.0)
    old = _running(running_mean, before, before_slab, model, column, BEFORE, D)
    unbiased = var * n / tl.maximum(n - 1.0, 1.0)
    mean = tl.where(enough, off + old, old)
    var = tl.where(enough, var, tl.load(running_var + model * D + column, inside, 1.0))
    return mean, 1.0 / tl.sqrt(var + eps), unbiased, enough, n


@kernel()
def _normalise(
    x, sums, running_mean, running_var, before, before_slab, weight, bias, bias_slab, y, saved, eps, rows,
    RELU: tl.constexpr, BEFORE: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (column < D)[None, :]
    mean, rstd, unbiased, enough, n = _statistics(
        sums, running_mean, running_var, before, before_slab, model, column, eps, BEFORE, D
    )
    at = (model * rows + row)[:, None] * D + column[None, :]
    scale = rstd * tl.load(weight + model * D + column, column < D, 0.0)
    offset = tl.load(bias + model * bias_slab + column, column < D, 0.0)
    value = (tl.load(x + at, inside, 0.0) - mean[None, :]) * scale[None, :] + offset[None, :]
    if RELU:
        value = tl.maximum(value, 0.0)
    tl.store(y + at, value, inside)
    if tl.program_id(0) == 0:  # for the derivative and the running averages
        to = saved + model * 5 * D + column
        tl.store(to, mean, column < D)
        tl.store(to + D, rstd, column < D)
        tl.store(to + 2 * D, unbiased, column < D)
        tl.store(to + 3 * D, tl.where(enough, 1.0 / n, 0.0), column < D)
        if BEFORE:
            mean += tl.load(before + model * before_slab + column, column < D, 0.0)
        tl.store(to + 4 * D, mean, column < D)


@kernel()
def _gradient_sums(
    g, x, y, saved, sums, rows, RELU: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr
):
    """Sum g and g · x̂ over all rows (padding has no gradient): (models, 2, width)."""
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (column < D)[None, :]
    at = (model * rows + row)[:, None] * D + column[None, :]
    given = tl.load(g + at, inside, 0.0)
    if RELU:
        given = tl.where(tl.load(y + at, inside, 0.0) > 0.0, given, 0.0)
    mean = tl.load(saved + model * 5 * D + column, column < D, 0.0)[None, :]
    rstd = tl.load(saved + model * 5 * D + D + column, column < D, 0.0)[None, :]
    hat = (tl.load(x + at, inside, 0.0) - mean) * rstd
    tl.atomic_add(sums + model * 2 * D + column, tl.sum(given, 0), column < D, sem="relaxed")
    tl.atomic_add(sums + model * 2 * D + D + column, tl.sum(given * hat, 0), column < D, sem="relaxed")


@kernel()
def _gradient(
    g, x, y, mask, saved, sums, weight, d_x, rows,
    RELU: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (column < D)[None, :]
    at = (model * rows + row)[:, None] * D + column[None, :]
    given = tl.load(g + at, inside, 0.0)
    if RELU:
        given = tl.where(tl.load(y + at, inside, 0.0) > 0.0, given, 0.0)
    c = tl.load(mask + model * rows + row, row < rows, 0.0)[:, None]
    mean = tl.load(saved + model * 5 * D + column, column < D, 0.0)[None, :]
    rstd = tl.load(saved + model * 5 * D + D + column, column < D, 0.0)[None, :]
    share = tl.load(saved + model * 5 * D + 3 * D + column, column < D, 0.0)[None, :]
    hat = (tl.load(x + at, inside, 0.0) - mean) * rstd
    all_g = tl.load(sums + model * 2 * D + column, column < D, 0.0)[None, :]
    all_gx = tl.load(sums + model * 2 * D + D + column, column < D, 0.0)[None, :]
    scale = tl.load(weight + model * D + column, column < D, 0.0)[None, :] * rstd
    tl.store(d_x + at, scale * (given - c * share * (all_g + hat * all_gx)), inside)


def batch_norm(x: Tensor, before: Tensor | None, norm: nn.BatchNorm1d, mask: Tensor, relu: bool) -> Tensor:
    """Normalize each model's rows by their own statistics, and update the running averages.

    x: (models, rows, width); mask: (models, rows, 1), 0 for padding. A bias `before` the norm moves the mean only: it
    has no gradient. A model with fewer than two rows is normalized by its running averages.
    """
    running = norm.running_mean, norm.running_var
    options = norm.momentum or 0.0, norm.eps, relu
    return _BatchNorm.apply(x, norm.weight, norm.bias, mask, *running, *options, before)  # type: ignore[no-any-return]


class _BatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, mask: Tensor, running_mean: Tensor, running_var: Tensor,
        momentum: float, eps: float, relu: bool, before: Tensor | None,
    ) -> Tensor:  # fmt: skip
        x, weight = x.contiguous(), weight.contiguous()
        models, rows, width = x.shape
        sums, saved, y = zeros(x, (models, 3, width)), x.new_empty(models, 5, width), torch.empty_like(x)
        tile = tile_of(width, _ROWS)
        grid = grid_of_rows(x, tile[2])
        lacks = before is not None
        added = per_model(bias if before is None else before)
        _sums[grid](x, mask, running_mean, *added, sums, rows, lacks, *tile)
        _normalise[grid](
            x,
            sums,
            running_mean,
            running_var,
            *added,
            weight,
            *per_model(bias),
            y,
            saved,
            eps,
            rows,
            relu,
            lacks,
            *tile,
        )
        step = momentum * (saved[:, 3] > 0).to(x.dtype)
        running_mean.lerp_(saved[:, 4], step)
        running_var.lerp_(saved[:, 2], step)
        ctx.save_for_backward(x, y, weight, mask, saved)
        ctx.relu = relu
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, y, weight, mask, saved = ctx.saved_tensors
        g = gradients[0].contiguous()
        models, rows, width = x.shape
        sums, d_x = zeros(x, (models, 2, width)), torch.empty_like(x)
        tile = ctx.relu, *tile_of(width, _ROWS)
        grid = grid_of_rows(x, tile[-1])
        _gradient_sums[grid](g, x, y, saved, sums, rows, *tile)
        _gradient[grid](g, x, y, mask, saved, sums, weight, d_x, rows, *tile)
        return d_x, sums[:, 1], sums[:, 0], *(None,) * 7
