"""A step of Adam in C: all tensors of a model in one call."""

from torch import Tensor

from mpad import native
from mpad.kernels.cpu import call

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # torch's defaults


def adam_step(
    parameters: list[Tensor],
    gradients: list[Tensor],
    m: list[Tensor],
    v: list[Tensor],
    rates: Tensor,
    steps: Tensor,
    active: Tensor,
) -> None:
    """Update the active models, one after another."""
    gradients = [g.contiguous() for g in gradients]
    for model, (rate, step, takes_step) in enumerate(zip(rates.tolist(), steps.tolist(), active.tolist(), strict=True)):
        if not takes_step:
            continue
        parts, start = (native.structures["parameter"] * len(parameters))(), 0
        for number, (x, first, second, g) in enumerate(zip(parameters, m, v, gradients, strict=True)):
            own = {"x": x[model], "m": first[model], "v": second[model], "g": g[model]}
            parts[number] = native.pack("parameter", **own, start=start, n=x[model].numel())
            start += x[model].numel()
        corrected = {"rate": rate / (1 - BETA1**step), "scale": (1 - BETA2**step) ** -0.5}
        call("adam", "adam", parts=parts, n=len(parts), **corrected, b1=BETA1, b2=BETA2, eps=EPSILON)
