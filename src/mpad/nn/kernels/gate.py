"""The gate's element-wise parts, and ReLU with its bias, between matrix products."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mpad.nn.kernels.tiles import grid_of_rows, strides, tile_of
from mpad.nn.kernels.zeros import zeros

_ROWS = 16


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def _tanh(x):
    return 2.0 / (1.0 + tl.exp(-2.0 * x)) - 1.0


@triton.jit
def _open(
    pre,
    from_state,
    bias,
    bias_slab,
    h,
    h_slab,
    h_row,
    reset_h,
    rows,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < D)
    at = model * rows + row
    state = tl.load(h + model * h_slab + row * h_row + column, inside, 0.0)
    r = tl.load(pre + at * 3 * D + column, inside, 0.0) + tl.load(from_state + at * 2 * D + column, inside, 0.0)
    r = _sigmoid(r + tl.load(bias + model * bias_slab + column, column < D, 0.0))
    z = tl.load(pre + at * 3 * D + D + column, inside, 0.0) + tl.load(from_state + at * 2 * D + D + column, inside, 0.0)
    z = _sigmoid(z + tl.load(bias + model * bias_slab + D + column, column < D, 0.0))
    tl.store(pre + at * 3 * D + column, r, inside)
    tl.store(pre + at * 3 * D + D + column, z, inside)
    tl.store(reset_h + at * D + column, r * state, inside)


@triton.jit
def _update(
    pre,
    from_reset,
    bias,
    bias_slab,
    h,
    h_slab,
    h_row,
    out,
    rows,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < D)
    at = model * rows + row
    c = tl.load(pre + at * 3 * D + 2 * D + column, inside, 0.0) + tl.load(from_reset + at * D + column, inside, 0.0)
    c = _tanh(c + tl.load(bias + model * bias_slab + 2 * D + column, column < D, 0.0))
    z = tl.load(pre + at * 3 * D + D + column, inside, 0.0)
    state = tl.load(h + model * h_slab + row * h_row + column, inside, 0.0)
    tl.store(pre + at * 3 * D + 2 * D + column, c, inside)
    tl.store(out + at * D + column, state + z * (c - state), inside)


@triton.jit
def _update_backward(
    g, g_slab, g_row, h, h_slab, h_row, rzc, d_rzc, rows, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr
):
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < D)
    at = (model * rows + row) * 3 * D + column
    z, c = tl.load(rzc + at + D, inside, 0.0), tl.load(rzc + at + 2 * D, inside, 0.0)
    state = tl.load(h + model * h_slab + row * h_row + column, inside, 0.0)
    given = tl.load(g + model * g_slab + row * g_row + column, inside, 0.0)
    tl.store(d_rzc + at + D, given * (c - state) * z * (1.0 - z), inside)
    tl.store(d_rzc + at + 2 * D, given * z * (1.0 - c * c), inside)


@triton.jit
def _open_backward(
    g,
    g_slab,
    g_row,
    h,
    h_slab,
    h_row,
    rzc,
    d_reset_h,
    d_rzc,
    d_h,
    rows,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < D)
    at = model * rows + row
    r = tl.load(rzc + at * 3 * D + column, inside, 0.0)
    z = tl.load(rzc + at * 3 * D + D + column, inside, 0.0)
    state = tl.load(h + model * h_slab + row * h_row + column, inside, 0.0)
    given = tl.load(g + model * g_slab + row * g_row + column, inside, 0.0)
    d = tl.load(d_reset_h + at * D + column, inside, 0.0)
    tl.store(d_rzc + at * 3 * D + column, d * state * r * (1.0 - r), inside)
    tl.store(d_h + at * D + column, given * (1.0 - z) + d * r, inside)


@triton.jit
def _bias_relu(x, bias, bias_slab, rows, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < D)
    at = x + (model * rows + row) * D + column
    y = tl.load(at, inside, 0.0) + tl.load(bias + model * bias_slab + column, column < D, 0.0)
    tl.store(at, tl.maximum(y, 0.0), inside)


@triton.jit
def _relu_backward(g, y, sums, rows, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)
    inside = (row < rows) & (column < D)[None, :]
    at = (model * rows + row) * D + column[None, :]
    d = tl.where(tl.load(y + at, inside, 0.0) > 0.0, tl.load(g + at, inside, 0.0), 0.0)
    tl.store(g + at, d, inside)
    tl.atomic_add(sums + model * D + column, tl.sum(d, 0), column < D, sem="relaxed")


def gate_forward(
    h: Tensor, m: Tensor, bias: Tensor, w: Tensor, u: Tensor, u_reset: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What `nn.gate.gate_forward` computes: H', (R, Z, C), R ⊙ H."""
    rows, width = h.shape[-2:]
    rzc = m @ w.mT
    reset_h, updated = torch.empty(h.shape, dtype=h.dtype, device=h.device), torch.empty_like(m)
    tile = rows, *tile_of(width, _ROWS)
    grid = grid_of_rows(h, tile[-1])
    _open[grid](rzc, h @ u.mT, bias, bias.stride(0), h, *strides(h), reset_h, *tile)
    _update[grid](rzc, reset_h @ u_reset.mT, bias, bias.stride(0), h, *strides(h), updated, *tile)
    return updated, rzc, reset_h


def gate_gradients(g: Tensor, h: Tensor, rzc: Tensor, u_reset: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the pre-activations of R, Z, C side by side, and of H, all but its way through the gates' U."""
    rows, width = h.shape[-2:]
    d_rzc, d_h = torch.empty_like(rzc), torch.empty(h.shape, dtype=h.dtype, device=h.device)
    tile = rows, *tile_of(width, _ROWS)
    grid = grid_of_rows(h, tile[-1])
    _update_backward[grid](g, *strides(g), h, *strides(h), rzc, d_rzc, *tile)
    d_reset_h = d_rzc[..., 2 * width :] @ u_reset
    _open_backward[grid](g, *strides(g), h, *strides(h), rzc, d_reset_h, d_rzc, d_h, *tile)
    return d_rzc, d_h


def bias_relu_(x: Tensor, bias: Tensor) -> Tensor:
    """ReLU(x + b), in place; x contiguous."""
    rows, width = x.shape[-2:]
    tile = tile_of(width, _ROWS)
    _bias_relu[grid_of_rows(x, tile[2])](x, bias, bias.stride(0), rows, *tile)
    return x


def relu_backward_(g: Tensor, y: Tensor) -> Tensor:
    """The gradient of y = ReLU(x + b) with respect to x, in place, both contiguous; and with respect to b."""
    rows, width = g.shape[-2:]
    sums = zeros(g, (*g.shape[:-2], width))
    tile = tile_of(width, 2 * _ROWS)
    _relu_backward[grid_of_rows(g, tile[2])](g, y, sums, rows, *tile)
    return sums
