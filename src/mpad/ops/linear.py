"""Linear maps, of one model or of several stacked ones."""

from torch import Tensor
from torch.nn import functional

from mpad.ops.dispatch import operator


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """X Wᵀ + b: ([models,] rows, in) → ([models,] rows, out). Of stacked models each maps its own rows."""
    return functional.linear(x, weight, bias) if weight.ndim == 2 else stacked_linear(x, weight, bias)


@operator(cuda="mpad.ops.cuda.linear:stacked_linear")
def stacked_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """X Wᵀ + b: (models, rows, in), (models, out, in), (models, out) → (models, rows, out)."""
    y = x @ weight.mT
    return y if bias is None else y + bias.unsqueeze(-2)
