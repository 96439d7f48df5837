"""One step of Adam (Kingma and Ba, 2015), over the parameters of one model or of several stacked ones."""

import torch
from torch import Tensor

from mpad.ops.dispatch import Changed, operator

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # torch's


@operator(cpu="mpad.ops.cpu.adam:adam_step", cuda="mpad.ops.cuda.adam:adam_step")
@torch.no_grad()
def adam_step(
    parameters: Changed, gradients: list[Tensor], m: Changed, v: Changed, rates: Tensor, steps: Tensor, active: Tensor
) -> None:
    """X ← x − rate · m̂ / (√v̂ + ε), with m ← β₁ m + (1 − β₁) g, v ← β₂ v + (1 − β₂) g², m̂ = m / (1 − β₁ᵗ) and so on.

    x, g, m, v: (models, numbers) each; rates, steps t (this one counted), active: (models,). A model that is not
    active is left as it is.
    """
    takes = active.to(rates.dtype)[:, None]
    t = steps.clamp(min=1).to(rates.dtype)[:, None]  # a model that has not begun is not active
    for x, g, first, second in zip(parameters, gradients, m, v, strict=True):
        first += takes * (1 - BETA1) * (g - first)
        second += takes * (1 - BETA2) * (g * g - second)
        root = torch.sqrt(second / (1 - BETA2**t)) + EPSILON
        x -= takes * rates[:, None] * first / (1 - BETA1**t) / root
