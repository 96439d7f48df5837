"""Directional attention on each feature, and its derivative; weights of pairs of places are never written down.

s_j = Σ_i e^{f_ij} ⊙ h_i / Σ_i e^{f_ij},  f_ij = c · tanh((a_i + b_j) / c),  over the places i before j, or behind it.
Scores stay within ± c, so that their exponentials need no shifting. Places behind a row's end get zeros.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad.kernels.cuda.gate import tanh
from mpad.kernels.cuda.kernel import kernel

_BLOCK = 64  # features of a program


@kernel()
def _forward(
    a, b, h, length, s, z, places, c, FORWARD: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    j, row, column = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside, n = column < D, tl.load(length + row)
    begin, end = (0, j) if FORWARD else (j + 1, n)
    end = tl.where(j < n, end, begin)
    at = row * places * D + column
    own = tl.load(b + at + j * D, inside, 0.0)
    total, mixed = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for i in range(begin, end):
        e = tl.exp(c * tanh((tl.load(a + at + i * D, inside, 0.0) + own) / c))
        total += e
        mixed += e * tl.load(h + at + i * D, inside, 0.0)
    tl.store(s + at + j * D, tl.where(total > 0, mixed / tl.where(total > 0, total, 1.0), 0.0), inside)
    tl.store(z + at + j * D, total, inside)


@kernel()
def _backward_of_self(
    g, a, b, h, length, s, z, d_b, places, c, FORWARD: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """A program for each place j that looks."""
    j, row, column = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside, n = column < D, tl.load(length + row)
    begin, end = (0, j) if FORWARD else (j + 1, n)
    end = tl.where(j < n, end, begin)
    at = row * places * D + column
    own, mixed = tl.load(b + at + j * D, inside, 0.0), tl.load(s + at + j * D, inside, 0.0)
    total = tl.load(z + at + j * D, inside, 1.0)
    pull = tl.load(g + at + j * D, inside, 0.0) / tl.where(total > 0, total, 1.0)
    result = tl.zeros((BLOCK,), tl.float32)
    for i in range(begin, end):
        t = tanh((tl.load(a + at + i * D, inside, 0.0) + own) / c)
        result += tl.exp(c * t) * pull * (tl.load(h + at + i * D, inside, 0.0) - mixed) * (1.0 - t * t)
    tl.store(d_b + at + j * D, result, inside)


@kernel()
def _backward_of_other(
    g, a, b, h, length, s, z, d_a, d_h, places, c, FORWARD: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """A program for each place i that is looked at."""
    i, row, column = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside, n = column < D, tl.load(length + row)
    begin, end = (i + 1, n) if FORWARD else (0, i)
    end = tl.where(i < n, end, begin)
    at = row * places * D + column
    own, state = tl.load(a + at + i * D, inside, 0.0), tl.load(h + at + i * D, inside, 0.0)
    of_score, of_state = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for j in range(begin, end):
        t = tanh((own + tl.load(b + at + j * D, inside, 0.0)) / c)
        total = tl.load(z + at + j * D, inside, 1.0)
        pull = tl.exp(c * t) / tl.where(total > 0, total, 1.0) * tl.load(g + at + j * D, inside, 0.0)
        of_state += pull
        of_score += pull * (state - tl.load(s + at + j * D, inside, 0.0)) * (1.0 - t * t)
    tl.store(d_a + at + i * D, of_score, inside)
    tl.store(d_h + at + i * D, of_state, inside)


def directional_attention(a: Tensor, b: Tensor, h: Tensor, real: Tensor, looks_back: bool, scale: float) -> Tensor:
    """Attend over the places before or after each place; real places come first in each row."""
    return _Directional.apply(a, b, h, real.sum(1), looks_back, scale)


class _Directional(torch.autograd.Function):
    """a, b, h: (rows, places, width), length: (rows,) → s: (rows, places, width)."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, h: Tensor, length: Tensor, looks_back: bool, scale: float) -> Tensor:
        a, b, h = a.contiguous(), b.contiguous(), h.contiguous()
        s, z = torch.empty_like(h), torch.empty_like(h)
        _forward[_grid(h)](a, b, h, length, s, z, h.shape[1], scale, looks_back, h.shape[2], _BLOCK)
        ctx.save_for_backward(a, b, h, length, s, z)
        ctx.looks_back, ctx.scale = looks_back, scale
        return s

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        a, b, h, length, s, z = ctx.saved_tensors
        g = gradients[0].contiguous()
        d_a, d_b, d_h = torch.empty_like(h), torch.empty_like(h), torch.empty_like(h)
        how = h.shape[1], ctx.scale, ctx.looks_back, h.shape[2], _BLOCK
        _backward_of_self[_grid(h)](g, a, b, h, length, s, z, d_b, *how)
        _backward_of_other[_grid(h)](g, a, b, h, length, s, z, d_a, d_h, *how)
        return d_a, d_b, d_h, None, None, None


def _grid(h: Tensor) -> tuple[int, int, int]:
    return h.shape[1], h.shape[0], triton.cdiv(h.shape[2], _BLOCK)
