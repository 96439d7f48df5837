"""Linear layers, and weights that an operator applies together with others."""

from typing import Any, NoReturn

from torch import Tensor, nn

from mpad import ops


class Linear(nn.Linear):
    """y = x Wᵀ + b: ([models,] rows, in) → ([models,] rows, out).

    Stacked models have a leading axis: W (models, out, in), b (models, out), and each maps its own rows.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Map rows."""
        return ops.linear(input, self.weight, self.bias)


class Uncalled(nn.Module):
    """A module whose weights or settings the module above applies, together with others, in one operator."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(
            f"a {type(self).__name__} is never called, so its hooks would never fire: what it holds is applied by "
            "the operator of the module above it; hook that one (a MessagePassing, a Readout)"
        )

    register_forward_hook = register_forward_pre_hook = _refuse
    register_full_backward_hook = register_full_backward_pre_hook = _refuse


class LinearWeights(Uncalled, nn.Linear):
    """W and b of a linear map."""


class NormWeights(Uncalled, nn.BatchNorm1d):
    """γ, β and running averages of a batch norm."""

    @property
    def running(self) -> list[Tensor]:
        """Running mean and variance."""
        assert self.running_mean is not None and self.running_var is not None
        return [self.running_mean, self.running_var]


class GateWeights(Uncalled):
    """Weights of the paper's gated recurrent unit; the three maps of the message are one, and the gates' two of H."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.from_message = LinearWeights(width, 3 * width)  # W_R, W_Z, W and the biases
        self.from_state = LinearWeights(width, 2 * width, bias=False)  # U_R, U_Z
        self.from_reset = LinearWeights(width, width, bias=False)  # U

    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The biases, W, the gates' U, and U."""
        return self.from_message.bias, self.from_message.weight, self.from_state.weight, self.from_reset.weight
