"""Batch normalisation (nn/norm.py), with the ReLU behind it and the running averages beside it."""

from ctypes import Structure, c_float
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad import native
from mpad.nn import compiled
from mpad.nn.compiled import at, by_rows, call
from mpad.nn.compiled.memory import empty


class _Norm(Structure):
    _fields_ = [
        *native.fields("x gamma beta before running_mean running_var mean scale room y", "x_row rows width relu"),
        ("momentum", c_float),
        ("eps", c_float),
    ]


class _NormBack(Structure):
    _fields_ = native.fields("g x gamma beta mean scale d_x found", "g_row x_row rows width relu")


def normalises(x: Tensor, gamma: Tensor) -> bool:
    """Whether the compiled pass takes these rows, while training."""
    return (
        compiled.takes(x)
        and compiled.takes(gamma)
        and x.shape[1:] == gamma.shape
        and x.shape[0] >= 2
        and x.shape[1] % native.LANES == 0
    )


class CompiledNorm(torch.autograd.Function):
    """Y = [ReLU] (X − mean) / √(var + ε) · γ + β over the rows: (rows, width) → the same."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        gamma: Tensor,
        beta: Tensor,
        running: tuple[Tensor, Tensor],
        momentum: float,
        eps: float,
        relu: bool,
        before: Tensor | None,
    ) -> Tensor:
        """X → Y; moves the running averages."""
        x, gamma, beta = by_rows(x), gamma.contiguous(), beta.contiguous()
        rows, width = x.shape
        kept, y = empty(2 + 2 * torch.get_num_threads(), width), empty(rows, width)
        arrays = x, gamma, beta, before, *running, kept[0], kept[1], kept[2], y
        call("norm", _Norm(*at(arrays), x.stride(0), rows, width, relu, momentum, eps))
        ctx.save_for_backward(x, gamma, beta, kept)
        ctx.relu = relu
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """DY → dX, dγ, dβ."""
        (x, gamma, beta, kept), g = ctx.saved_tensors, by_rows(gradients[0])
        rows, width = x.shape
        d_x, found = empty(rows, width), empty(torch.get_num_threads(), 2 * width)
        arrays = g, x, gamma, beta, kept[0], kept[1], d_x, found
        call("norm_back", _NormBack(*at(arrays), g.stride(0), x.stride(0), rows, width, ctx.relu))
        d_gamma, d_beta = found[0].split(width)
        return d_x, d_gamma, d_beta, None, None, None, None, None
