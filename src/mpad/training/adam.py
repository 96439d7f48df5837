"""Adam over networks of many small tensors, of one model or of several."""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from mpad.nn import compiled
from mpad.nn.compiled.adam import CompiledAdam

_LARGE = 1 << 17  # numbers; a tensor this large is worth an update of its own
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # torch's names
_ALIGN = 16  # numbers; where each parameter starts, so that products read whole cache lines


class FlatParameters:
    """Parameters laid end to end, a row a model: while they are, each is a view of its part.

    A step over thirty small tensors costs a millisecond of bookkeeping; over one vector, a tenth of that.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], n_models: int) -> None:
        self.parameters = list(parameters)
        sizes = [parameter.numel() // n_models for parameter in self.parameters]
        rooms = [-(-size // _ALIGN) * _ALIGN for size in sizes]
        self._gaps = [room - size for room, size in zip(rooms, sizes, strict=True)]
        self.flat = self.parameters[0].detach().new_zeros(n_models, sum(rooms))
        self._views: list[Tensor] = []
        start = 0
        for parameter, size, room in zip(self.parameters, sizes, rooms, strict=True):
            part = self.flat[:, start : start + size]
            part.copy_(parameter.detach().reshape(n_models, size))
            parameter.data = part.view(parameter.shape)
            self._views.append(parameter.data)
            start += room

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def gradient(self) -> Tensor:
        """The gradients, laid out as the parameters are; no gradient counts as a zero one: (models, numbers)."""
        self._bring_back()
        n_models, parts = self.flat.shape[0], []
        for parameter, gap in zip(self.parameters, self._gaps, strict=True):
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parts.append(gradient.reshape(n_models, -1))
            if gap:
                parts.append(self.flat.new_zeros(n_models, gap))
        return torch.cat(parts, dim=1)

    def _bring_back(self) -> None:
        """Parameters that somebody has moved, to share them with a process for one, become views again."""
        for parameter, view in zip(self.parameters, self._views, strict=True):
            if parameter.data_ptr() != view.data_ptr():
                view.copy_(parameter.detach())
                parameter.data = view

    def release(self) -> None:
        """Give each parameter memory of its own again."""
        for parameter in self.parameters:
            parameter.data = parameter.data.clone(memory_format=torch.contiguous_format)


class FlatAdam:
    """torch's Adam, with all small parameters of a model updated as one vector.

    With several `rates` the parameters have a leading axis, a row a model: each has its own learning rate and takes
    its own steps.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], rates: float | Sequence[float]) -> None:
        self._stacked = not isinstance(rates, float)
        each = [rates] if isinstance(rates, float) else list(rates)
        parameters = list(parameters)
        self._large = [parameter for parameter in parameters if parameter.numel() >= _LARGE * len(each)]
        self._small = FlatParameters((p for p in parameters if p.numel() < _LARGE * len(each)), len(each))
        self._rows: list[list[nn.Parameter]] = []
        self._adam = []
        for number, rate in enumerate(each):
            own = [self._small.flat[number], *[self._of(number, p.data) for p in self._large]]
            self._rows.append([nn.Parameter(row) for row in own])
            self._adam.append(torch.optim.Adam(self._rows[-1], lr=rate, fused=True))

    def _of(self, model: int, x: Tensor) -> Tensor:
        return x[model] if self._stacked else x

    def zero_grad(self) -> None:
        """Forget the gradients."""
        self._small.zero_grad()
        for parameter in self._large:
            parameter.grad = None

    def step(self, active: Sequence[bool] | None = None) -> None:
        """Update every parameter of the active models by its gradient."""
        gradient = self._small.gradient()
        for number, (rows, adam) in enumerate(zip(self._rows, self._adam, strict=True)):
            if active is not None and not active[number]:
                continue
            rows[0].grad = gradient[number]
            for row, parameter in zip(rows[1:], self._large, strict=True):
                if parameter.grad is not None:
                    row.grad = self._of(number, parameter.grad)
            adam.step()

    def scale_learning_rate(self, factor: float) -> None:
        """Multiply the learning rates."""
        for adam in self._adam:
            for group in adam.param_groups:
                group["lr"] *= factor

    def state(self) -> dict[str, Tensor]:
        """Moments, steps and learning rates, for a checkpoint."""
        found: dict[str, Tensor] = {}
        for model, (rows, adam) in enumerate(zip(self._rows, self._adam, strict=True)):
            found[f"{model}.rate"] = torch.tensor(adam.param_groups[0]["lr"], dtype=torch.float64)
            for number, row in enumerate(rows):
                own = adam.state.get(row) or _no_steps(row)
                found |= {f"{model}.{number}.{name}": own[name] for name in _MOMENTS}
        return found

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Put back what `state` gave."""
        for model, (rows, adam) in enumerate(zip(self._rows, self._adam, strict=True)):
            adam.param_groups[0]["lr"] = float(state[f"{model}.rate"])
            for number, row in enumerate(rows):
                own = {name: state[f"{model}.{number}.{name}"].clone() for name in _MOMENTS}
                adam.state[row] = {name: x if name == "step" else x.to(row.device) for name, x in own.items()}

    def release(self) -> None:
        """Give each parameter memory of its own again."""
        self._small.release()


def _no_steps(row: Tensor) -> dict[str, Tensor]:
    """What torch's Adam has of a parameter before its first step."""
    return {"step": torch.zeros(()), "exp_avg": torch.zeros_like(row), "exp_avg_sq": torch.zeros_like(row)}


def make_adam(parameters: Sequence[nn.Parameter], rates: float | Sequence[float]) -> "FlatAdam | CompiledAdam":
    """Adam for one model, or with several rates for stacked ones."""
    if isinstance(rates, float) and all(
        compiled.takes(parameter) and parameter.is_contiguous() for parameter in parameters
    ):
        return CompiledAdam(parameters, rates)
    return FlatAdam(parameters, rates)
