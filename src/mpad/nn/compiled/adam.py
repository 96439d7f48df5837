"""Adam over a network's numbers (training/adam.py), all tensors in one call."""

from collections.abc import Iterable, Mapping, Sequence
from ctypes import POINTER, Structure, c_float, c_long

import torch
from torch import nn

from mpad import native
from mpad.nn.compiled import at, call

_B1, _B2, _EPSILON = 0.9, 0.999, 1e-8  # torch's


class _Numbers(Structure):
    _fields_ = native.fields("x m v g", "start n")


class _Adam(Structure):
    _fields_ = [
        ("parts", POINTER(_Numbers)),
        ("n", c_long),
        *[(name, c_float) for name in ("rate", "b1", "b2", "scale", "eps")],
    ]


class CompiledAdam:
    """torch's Adam, of one model."""

    def __init__(self, parameters: Iterable[nn.Parameter], rate: float) -> None:
        self._parameters = list(parameters)
        self._moments = [(torch.zeros_like(x), torch.zeros_like(x)) for x in self._parameters]
        self._rate, self._steps = rate, 0
        self._parts, start = (_Numbers * len(self._parameters))(), 0
        for number, (parameter, moments) in enumerate(zip(self._parameters, self._moments, strict=True)):
            self._parts[number] = _Numbers(*at((parameter, *moments, None)), start, parameter.numel())
            start += parameter.numel()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    def step(self, active: Sequence[bool] | None = None) -> None:
        """Update every parameter by its gradient; one without counts as having a zero one."""
        if active is not None and not any(active):
            return
        self._steps += 1
        gradients = [None if x.grad is None else x.grad.contiguous() for x in self._parameters]
        for part, place, own in zip(self._parts, at(gradients), at(self._parameters), strict=True):
            part.g, part.x = place, own
        rate, scale = self._rate / (1 - _B1**self._steps), (1 - _B2**self._steps) ** -0.5
        call("adam", _Adam(self._parts, len(self._parts), rate, _B1, _B2, scale, _EPSILON))

    def scale_learning_rate(self, factor: float) -> None:
        """Multiply the learning rate."""
        self._rate *= factor

    def state(self) -> dict[str, torch.Tensor]:
        """Moments, steps and learning rate, for a checkpoint."""
        found = {f"{k}.{n}": x for k, pair in enumerate(self._moments) for n, x in zip("mv", pair, strict=True)}
        return {**found, "rate": torch.tensor(self._rate, dtype=torch.float64), "steps": torch.tensor(self._steps)}

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        """Put back what `state` gave."""
        for k, pair in enumerate(self._moments):
            for name, x in zip("mv", pair, strict=True):
                x.copy_(state[f"{k}.{name}"])
        self._rate, self._steps = float(state["rate"]), int(state["steps"])

    def release(self) -> None:
        """Parameters are where they always were."""
