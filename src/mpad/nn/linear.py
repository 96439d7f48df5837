"""Linear maps that may belong to several models at once."""

from torch import Tensor, nn
from torch.nn import functional


class Linear(nn.Linear):
    """y = x Wᵀ + b: ([models,] rows, in) → ([models,] rows, out).

    Stacked models have a leading axis: W (models, out, in), b (models, out), and each maps its own slab of rows.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Map rows."""
        return affine(input, self.weight, self.bias)


def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """X Wᵀ + b."""
    if weight.ndim == 2:
        return functional.linear(x, weight, bias)
    y = x @ weight.mT
    return y if bias is None else y + bias.unsqueeze(-2)


def add_product_(to: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Add a b to `to`, in place: matrices, or one matrix a model."""
    return to.addmm_(a, b) if to.ndim == 2 else to.baddbmm_(a, b)


def weight_gradient(g: Tensor, x: Tensor) -> Tensor:
    """Gᵀ X, the gradient of W in Y = X Wᵀ: ([models,] rows, out), ([models,] rows, in) → ([models,] out, in)."""
    if not x.is_cuda or x.ndim == 2 or x.shape[1] % _SPLIT:
        return g.mT @ x
    # A few small products over thousands of rows would leave most of a GPU idle: cut the rows, and add up.
    models, rows = x.shape[:2]
    cut = models * _SPLIT, rows // _SPLIT
    parts = g.reshape(*cut, g.shape[2]).mT @ x.reshape(*cut, x.shape[2])
    return parts.view(models, _SPLIT, g.shape[2], x.shape[2]).sum(1)


_SPLIT = 8
