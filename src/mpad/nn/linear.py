"""Linear maps that may belong to several models at once."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from mpad.nn import kernels
from mpad.nn.compiled.linear import CompiledLinear, worthwhile


class Linear(nn.Linear):
    """y = x Wᵀ + b: ([models,] rows, in) → ([models,] rows, out).

    Stacked models have a leading axis: W (models, out, in), b (models, out), and each maps its own slab of rows.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Map rows."""
        return affine(input, self.weight, self.bias)

    def relu(self, x: Tensor) -> Tensor:
        """Map rows; ReLU of that."""
        if self.weight.ndim == 2 and worthwhile(x, self.weight):
            return CompiledLinear.apply(x, self.weight, self.bias, True)  # type: ignore[no-untyped-call]
        return functional.relu(self(x))


def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """X Wᵀ + b."""
    if weight.ndim == 2:
        if worthwhile(x, weight):
            return CompiledLinear.apply(x, weight, bias, False)  # type: ignore[no-untyped-call]
        return functional.linear(x, weight, bias)
    if kernels.run_on(x):
        return _Affine.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    y = x @ weight.mT
    return y if bias is None else y + bias.unsqueeze(-2)


def add_product_(to: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Add a b to `to`, in place: matrices, or one matrix a model."""
    return to.addmm_(a, b) if to.ndim == 2 else to.baddbmm_(a, b)


def weight_gradient(g: Tensor, x: Tensor) -> Tensor:
    """Gᵀ X, the gradient of W in Y = X Wᵀ: ([models,] rows, out), ([models,] rows, in) → ([models,] out, in)."""
    return weight_and_bias_gradient(g, x, bias=False)[0]


def weight_and_bias_gradient(g: Tensor, x: Tensor, bias: bool = True) -> tuple[Tensor, Tensor | None]:
    """The gradients of W and of b in Y = X Wᵀ + b."""
    if x.ndim == 3 and kernels.run_on(x):
        from mpad.nn.kernels.products import weight_gradient as on_gpu

        return on_gpu(g, x, bias)
    return g.mT @ x, g.sum(-2) if bias else None


class _Affine(torch.autograd.Function):
    """X Wᵀ + b of stacked models on a GPU, where the plain derivative of W would leave most of it idle."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        return x @ weight.mT if bias is None else torch.baddbmm(bias.unsqueeze(1), x, weight.mT)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        d_x = gradients[0] @ weight if ctx.needs_input_grad[0] else None
        return d_x, *weight_and_bias_gradient(gradients[0], x, ctx.has_bias)
