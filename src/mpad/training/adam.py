"""Adam over networks of many small tensors, of one model or of several stacked ones."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from mpad import kernels

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # torch's defaults
_LARGE = 1 << 17  # numbers of a model; a tensor this large is worth an update of its own
_ALIGN = 16  # numbers; where each parameter starts, so that products read whole cache lines


class Decay(NamedTuple):
    """Decay of weights per step and unit of learning rate: of matrices to zero, of all weights to their first values.

    Embeddings as large as `_LARGE` have neither.
    """

    to_zero: float = 0.0
    matrices: Iterable[nn.Parameter] = ()
    to_start: float = 0.0


NO_DECAY = Decay()


class Adam:
    """Adam with a learning rate for each model. Stacked models' parameters have a leading axis, a row per model.

    Small parameters are laid end to end, one row per model; each is a view of its part. A step over thirty small
    tensors costs a millisecond of bookkeeping; over one vector, a tenth of that.

    `steps` (models,) counts the steps that each model has taken, including the current one; the caller advances it.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        rates: Sequence[float],
        steps: Tensor,
        decay: Decay = NO_DECAY,
    ) -> None:
        trained, n, decays = list(parameters), len(rates), {id(parameter) for parameter in decay.matrices}
        self._steps, self._n, like = steps, n, trained[0].detach()
        self.rates = torch.tensor(list(rates), device=steps.device, dtype=torch.float64).to(like.dtype)
        self._large = [parameter for parameter in trained if parameter.numel() >= _LARGE * n]
        self._small = [parameter for parameter in trained if parameter.numel() < _LARGE * n]
        sizes = [parameter.numel() // n for parameter in self._small]
        padded = [-(-size // _ALIGN) * _ALIGN for size in sizes]
        self._flat = like.new_zeros(n, sum(padded))
        self._gradient = torch.zeros_like(self._flat)
        self._zeros = [like.new_zeros(n, size) for size in sizes]
        self._gaps = [like.new_zeros(n, whole - size) for size, whole in zip(sizes, padded, strict=True)]
        to_zero = like.new_zeros(1, sum(padded))
        for parameter, size, start in zip(self._small, sizes, accumulate(padded, initial=0), strict=False):
            part = self._flat[:, start : start + size]
            part.copy_(parameter.detach().reshape(n, size))
            parameter.data = part.view(parameter.shape)
            to_zero[:, start : start + size] = decay.to_zero if id(parameter) in decays else 0.0
        self._to_zero = to_zero if decay.to_zero else None
        self._to_start, self._start = decay.to_start, self._flat.clone() if decay.to_start else None
        self._views = [parameter.data for parameter in self._small]
        self._addresses = [view.data_ptr() for view in self._views]
        shapes = [self._flat, *[parameter.detach().view(n, -1) for parameter in self._large]]
        self.m, self.v = [torch.zeros_like(x) for x in shapes], [torch.zeros_like(x) for x in shapes]

    def zero_grad(self) -> None:
        """Clear the gradients."""
        for parameter in (*self._small, *self._large):
            parameter.grad = None

    def step(self, active: Tensor) -> None:
        """Update every parameter of the active models (models,) by its gradient."""
        gradients, values = [self._flat_gradient()], [self._flat]
        rates = (self.rates * active)[:, None]
        if self._to_zero is not None:
            self._flat -= self._flat * (self._to_zero * rates)
        if self._start is not None:
            self._flat.lerp_(self._start, (self._to_start * rates).clamp(max=1.0))
        for parameter in self._large:
            values.append(parameter.detach().view(self._n, -1))
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            gradients.append(gradient.reshape(self._n, -1))
        adam_step(values, gradients, [self.m, self.v], self.rates, self._steps, active)

    def _flat_gradient(self) -> Tensor:
        """Return the gradients of small parameters, laid out like these: (models, numbers). A missing one is zero."""
        parts: list[Tensor] = []
        for parameter, view, address in zip(self._small, self._views, self._addresses, strict=True):
            if parameter.data_ptr() != address:  # it was moved, for example to share it with a process
                view.copy_(parameter.detach())
                parameter.data = view
        for parameter, zeros, gap in zip(self._small, self._zeros, self._gaps, strict=True):
            parts.append(zeros if parameter.grad is None else parameter.grad.reshape(zeros.shape))
            if gap.shape[1]:
                parts.append(gap)
        return torch.cat(parts, dim=1, out=self._gradient)

    def changed(self) -> list[Tensor]:
        """Return every tensor that a step changes."""
        return [self._flat, *[parameter.detach() for parameter in self._large], *self.m, *self.v]

    def state(self) -> dict[str, Tensor]:
        """Return moments and learning rates, for a checkpoint."""
        moments = {f"{k}.{name}": x for name, part in (("m", self.m), ("v", self.v)) for k, x in enumerate(part)}
        return {**moments, "rates": self.rates}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned, in place."""
        for name, own in self.state().items():
            own.copy_(state[name])

    def reset(self, rates: Sequence[float]) -> None:
        """Start again with these learning rates."""
        for x in (*self.m, *self.v):
            x.zero_()
        self.rates.copy_(torch.tensor(list(rates)))
        if self._start is not None:
            self._start.copy_(self._flat)

    def release(self) -> None:
        """Give each parameter its own memory again."""
        self.zero_grad()
        for parameter in self._small:
            parameter.data = parameter.data.clone(memory_format=torch.contiguous_format)


@torch.no_grad()
def adam_step(
    parameters: list[Tensor],
    gradients: list[Tensor],
    moments: list[list[Tensor]],
    rates: Tensor,
    steps: Tensor,
    active: Tensor,
) -> None:
    """Take a step of Adam for the active models: parameters, gradients and moments are (models, numbers) each."""
    if kernels.adam_step(parameters, gradients, moments, rates, steps, active):
        return
    for model, (rate, step, takes_step) in enumerate(zip(rates.tolist(), steps.tolist(), active.tolist(), strict=True)):
        if takes_step:
            x, g, m, v = ([x[model] for x in xs] for xs in (parameters, gradients, *moments))
            counts = [torch.tensor(float(step - 1), device=rates.device) for _ in parameters]  # torch adds 1
            adam(
                x, g, m, v, [], counts, fused=True, amsgrad=False, beta1=BETA1, beta2=BETA2, lr=rate, weight_decay=0.0,
                eps=EPSILON, maximize=False,
            )  # fmt: skip
