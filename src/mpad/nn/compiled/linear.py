"""Linear maps of many rows (nn/linear.py): the derivative gives rows and weights their gradients in one pass."""

from ctypes import Structure
from typing import Any

import torch
from torch import Tensor

from mpad import native
from mpad.nn.compiled import at, by_rows, call, run_on
from mpad.nn.compiled.memory import empty

_PANEL = 64  # as in passes.c
_MANY = 512  # rows; fewer are left to torch


class _LinearArrays(Structure):
    _fields_ = native.fields("x w b turned y", "x_row rows n_in n_out")


class _LinearBack(Structure):
    _fields_ = native.fields("g x w d_x found", "g_row x_row rows n_in n_out room")


def worthwhile(x: Tensor, weight: Tensor) -> bool:
    """Whether this is faster than torch's own product."""
    return len(x) >= _MANY and weight.ndim == 2 and weight.requires_grad and run_on(x) and native.fits(len(weight))


class CompiledLinear(torch.autograd.Function):
    """Y = X Wᵀ + b: (rows, in) → (rows, out)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """X → Y."""
        x, weight = by_rows(x), weight.contiguous()
        (rows, n_in), n_out = x.shape, len(weight)
        turned, y = empty(-(-n_out // _PANEL) * _PANEL, n_in), empty(rows, n_out)
        call("linear", _LinearArrays(*at((x, weight, bias, turned, y)), x.stride(0), rows, n_in, n_out))
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """DY → dX, dW, db."""
        (x, weight), g = ctx.saved_tensors, by_rows(gradients[0])
        (rows, n_in), n_out = x.shape, len(weight)
        room = n_out * (n_in + 1)
        found = empty(torch.get_num_threads(), room)
        d_x = empty(rows, n_in) if ctx.needs_input_grad[0] else None
        shape = g.stride(0), x.stride(0), rows, n_in, n_out, room
        call("linear_back", _LinearBack(*at((g, x, weight, d_x, found)), *shape))
        d_w, d_b = found[0].split((n_out * n_in, n_out))
        return d_x, d_w.view(n_out, n_in), d_b if ctx.has_bias else None
