"""Adam over networks of many small tensors, of one model or of several."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

_LARGE = 1 << 17  # numbers; a tensor this large is worth an update of its own
_ALIGN = 16  # numbers; where each parameter starts, so that products read whole cache lines


class FlatAdam:
    """torch's Adam, with all small parameters of a model laid end to end and updated as one vector.

    A step over thirty small tensors costs a millisecond of bookkeeping; over one vector, a tenth of that. While
    training, each parameter is a view of that vector; `release` gives it memory of its own again. With several
    `rates` the parameters have a leading axis, a row a model: each has its own learning rate and its own steps.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], rates: float | Sequence[float]) -> None:
        self._stacked = not isinstance(rates, float)
        each = [rates] if isinstance(rates, float) else list(rates)
        parameters = list(parameters)
        large = [parameter for parameter in parameters if parameter.numel() >= _LARGE * len(each)]
        self._small = [parameter for parameter in parameters if parameter.numel() < _LARGE * len(each)]
        self._flat = self._lay_out(len(each))
        self._large = large
        self._rows: list[list[nn.Parameter]] = []
        self._adam = []
        for number, rate in enumerate(each):
            own = [self._flat[number], *[p.data[number] if self._stacked else p.data for p in large]]
            self._rows.append([nn.Parameter(row) for row in own])
            self._adam.append(torch.optim.Adam(self._rows[-1], lr=rate, fused=True))

    def _lay_out(self, n_models: int) -> Tensor:
        sizes = [parameter.numel() // n_models for parameter in self._small]
        starts = [0]
        for size in sizes:
            starts.append(starts[-1] + -(-size // _ALIGN) * _ALIGN)
        self._places = [(start, start + size) for start, size in zip(starts, sizes, strict=False)]
        flat = self._small[0].new_zeros(n_models, starts[-1]).detach()
        for parameter, (start, end) in zip(self._small, self._places, strict=True):
            flat[:, start:end] = parameter.detach().reshape(n_models, -1)
            parameter.data = flat[:, start:end].view(parameter.shape)
        return flat

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in (*self._small, *self._large):
            parameter.grad = None

    def step(self, active: Sequence[bool] | None = None) -> None:
        """Update every parameter by its gradient, of the active models; no gradient counts as a zero one."""
        gradient = self.flat_gradient()
        for number, (rows, adam) in enumerate(zip(self._rows, self._adam, strict=True)):
            if active is not None and not active[number]:
                continue
            rows[0].grad = gradient[number]
            for row, parameter in zip(rows[1:], self._large, strict=True):
                if parameter.grad is not None:
                    row.grad = parameter.grad[number] if self._stacked else parameter.grad
            adam.step()

    def flat_gradient(self) -> Tensor:
        """The small parameters' gradients, laid out as they are: (models, numbers)."""
        n_models, length = self._flat.shape
        parts, at = [], 0
        for parameter, (start, end) in zip(self._small, self._places, strict=True):
            if start > at:
                parts.append(self._flat.new_zeros(n_models, start - at))
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parts.append(gradient.reshape(n_models, -1))
            at = end
        if length > at:
            parts.append(self._flat.new_zeros(n_models, length - at))
        return torch.cat(parts, dim=1)

    def scale_learning_rate(self, factor: float) -> None:
        """Multiply the learning rates."""
        for adam in self._adam:
            for group in adam.param_groups:
                group["lr"] *= factor

    def release(self) -> None:
        """Give each parameter memory of its own."""
        for parameter in self._small:
            parameter.data = parameter.data.clone(memory_format=torch.contiguous_format)
