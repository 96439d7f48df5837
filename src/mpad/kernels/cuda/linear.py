"""Linear maps of stacked models; the gradient of their weights sums thousands of rows, split across the GPU."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad.kernels.cuda import zeros
from mpad.kernels.cuda.kernel import kernel, strides

_NARROW, _WIDE = (64, 64, 4), (128, 32, 8)  # columns of a tile on either side, rows read at a time, warps
_PROGRAMS = 264  # two for each multiprocessor of a large GPU


@kernel(do_not_specialize=["rows", "n_out", "n_in", "chunk", "tiles_in"])
def _weight_gradient(
    g, g_slab, g_row, x, x_slab, x_row, d_w, d_b, rows, n_out, n_in, chunk, tiles_in,
    BIAS: tl.constexpr, HALF: tl.constexpr, TILE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    model, tile, split = tl.program_id(2).to(tl.int64), tl.program_id(1), tl.program_id(0)
    o = (tile // tiles_in) * TILE + tl.arange(0, TILE)
    i = (tile % tiles_in) * TILE + tl.arange(0, TILE)
    g += model * g_slab
    x += model * x_slab
    total = tl.zeros((TILE, TILE), tl.float32)
    bias = tl.zeros((TILE,), tl.float32)
    for start in range(split * chunk, tl.minimum(split * chunk + chunk, rows), ROWS):
        row = start + tl.arange(0, ROWS)
        inside = row < rows
        a = tl.load(g + row[:, None] * g_row + o[None, :], inside[:, None] & (o < n_out)[None, :], 0.0)
        b = tl.load(x + row[:, None] * x_row + i[None, :], inside[:, None] & (i < n_in)[None, :], 0.0)
        if HALF:
            total += tl.dot(tl.trans(a.to(tl.bfloat16)), b.to(tl.bfloat16))
        else:
            total += tl.dot(tl.trans(a), b, input_precision="ieee")
        if BIAS:
            bias += tl.sum(a, 0)
    at = d_w + model * n_out * n_in + o[:, None] * n_in + i[None, :]
    tl.atomic_add(at, total, (o < n_out)[:, None] & (i < n_in)[None, :], sem="relaxed")
    if BIAS:
        if tile % tiles_in == 0:
            tl.atomic_add(d_b + model * n_out + o, bias, o < n_out, sem="relaxed")


def weight_gradient(g: Tensor, x: Tensor, bias: bool) -> tuple[Tensor, Tensor | None]:
    """Return Gᵀ X and the column sums of G: (models, rows, out), (models, rows, in) → (models, out, in), (models, out).

    If lower precision is allowed, factors are rounded to bfloat16: tensor cores transpose it on the way.
    """
    models, rows, n_out = g.shape
    n_in = x.shape[2]
    sums = zeros(g, (models * n_out * (n_in + bias),))
    d_w = sums[: models * n_out * n_in].view(models, n_out, n_in)
    d_b = sums[models * n_out * n_in :].view(models, n_out) if bias else None
    half = torch.get_float32_matmul_precision() != "highest"
    tile, some, warps = _WIDE if half and min(n_out, n_in) >= _WIDE[0] else _NARROW
    tiles_in = triton.cdiv(n_in, tile)
    tiles = triton.cdiv(n_out, tile) * tiles_in
    chunk = triton.cdiv(triton.cdiv(rows, max(1, _PROGRAMS // (tiles * models))), some) * some
    _weight_gradient[(triton.cdiv(rows, chunk), tiles, models)](
        g, *strides(g), x, *strides(x), d_w, d_w if d_b is None else d_b, rows, n_out, n_in, chunk, tiles_in,
        bias, half, tile, some, num_warps=warps,
    )  # fmt: skip
    return d_w, d_b


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return X Wᵀ + b per model: (models, rows, in), (models, out, in), (models, out) → (models, rows, out)."""
    return _Linear.apply(x, weight, bias)  # type: ignore[no-any-return]


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        return x @ weight.mT if bias is None else torch.baddbmm(bias.unsqueeze(1), x, weight.mT)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        g, x = (rows if rows.stride(-1) == 1 else rows.contiguous() for rows in (gradients[0], x))
        d_x = g @ weight if ctx.needs_input_grad[0] else None
        return d_x, *weight_gradient(g, x, ctx.has_bias)
