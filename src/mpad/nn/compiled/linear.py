"""Linear maps of many rows (nn/linear.py): the derivative gives rows and weights their gradients in one pass."""

from ctypes import Structure
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad import native
from mpad.nn.compiled import at, by_rows, call, run_on
from mpad.nn.compiled.memory import empty, kept, scratch


class _LinearArrays(Structure):
    _fields_ = native.fields("x w b turned y", "x_row rows n_in n_out relu")


class _LinearBack(Structure):
    _fields_ = native.fields("g x y w d_x found", "g_row x_row rows n_in n_out room onto")


def worthwhile(x: Tensor, weight: Tensor) -> bool:
    """Whether the derivative will be taken, and the compiled pass takes these."""
    wanted = weight.requires_grad and torch.is_grad_enabled() and weight.dtype == x.dtype
    return wanted and run_on(x) and native.fits(*weight.shape) and x.shape[1] == weight.shape[1]


class CompiledLinear(torch.autograd.Function):
    """Y = [ReLU] X Wᵀ + b: (rows, in) → (rows, out)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool) -> Tensor:
        """X → Y."""
        x, weight = by_rows(x), weight.contiguous()
        (rows, n_in), n_out = x.shape, weight.shape[0]
        turned, y = scratch(-(-n_out // native.PANEL) * native.PANEL, n_in), empty(rows, n_out)
        call("linear", _LinearArrays(*at((x, weight, bias, turned, y)), x.stride(0), rows, n_in, n_out, relu))
        ctx.save_for_backward(x, y if relu else None, weight)
        ctx.has_bias = bias is not None
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """DY → dX, dW, db."""
        (x, y, weight), g = ctx.saved_tensors, by_rows(gradients[0])
        (rows, n_in), n_out = x.shape, weight.shape[0]
        room = n_out * (n_in + 1 + (native.BLOCK if y is not None else 0))
        found = scratch(torch.get_num_threads(), room)
        d_x = empty(rows, n_in) if ctx.needs_input_grad[0] else None
        shape = g.stride(0), x.stride(0), rows, n_in, n_out, room, False
        call("linear_back", _LinearBack(*at((g, x, y, weight, d_x, found)), *shape))
        d_w, d_b = kept(found, (n_out * n_in, n_out))
        return d_x, d_w.view(n_out, n_in), d_b if ctx.has_bias else None, None
