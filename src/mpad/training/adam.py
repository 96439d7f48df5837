"""Adam over a network of many small tensors."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

_LARGE = 1 << 17  # numbers; a tensor this large is worth an update of its own


class FlatAdam:
    """torch's Adam, with all small parameters laid end to end and updated as one vector.

    A step over thirty small tensors costs a millisecond of bookkeeping; over one vector, a tenth of that. While
    training, each parameter is a view of that vector; `release` gives it memory of its own again.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], learning_rate: float) -> None:
        parameters = list(parameters)
        self._large = [parameter for parameter in parameters if parameter.numel() >= _LARGE]
        self._small = [parameter for parameter in parameters if parameter.numel() < _LARGE]
        with torch.no_grad():
            self._flat = nn.Parameter(torch.cat([parameter.reshape(-1) for parameter in self._small]))
            start = 0
            for parameter in self._small:
                end = start + parameter.numel()
                parameter.data = self._flat.data[start:end].view(parameter.shape)
                start = end
        self._adam = torch.optim.Adam([self._flat, *self._large], lr=learning_rate, fused=True)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in (*self._small, *self._large):
            parameter.grad = None

    def step(self) -> None:
        """Update every parameter by its gradient; one without a gradient counts as having a zero one."""
        self._flat.grad = torch.cat([_gradient(parameter).reshape(-1) for parameter in self._small])
        self._adam.step()

    def scale_learning_rate(self, factor: float) -> None:
        """Multiply the learning rate."""
        for group in self._adam.param_groups:
            group["lr"] *= factor

    def release(self) -> None:
        """Give each parameter memory of its own."""
        for parameter in self._small:
            parameter.data = parameter.data.clone()


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
