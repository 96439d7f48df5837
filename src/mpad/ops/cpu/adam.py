"""A step of Adam (ops/adam.py) in C: all tensors of a model in one call."""

from typing import Any

from torch import Tensor

from mpad.kernels import native
from mpad.ops.adam import BETA1, BETA2, EPSILON
from mpad.ops.cpu import call, takes


def adam_step(
    parameters: list[Tensor],
    gradients: list[Tensor],
    m: list[Tensor],
    v: list[Tensor],
    rates: Tensor,
    steps: Tensor,
    active: Tensor,
) -> Any:
    """Update the active models, one after another."""
    if not takes(*parameters, *gradients, *m, *v) or not all(x.is_contiguous() for x in (*parameters, *m, *v)):
        return NotImplemented
    gradients = [g.contiguous() for g in gradients]
    for model, (rate, step, takes_step) in enumerate(zip(rates.tolist(), steps.tolist(), active.tolist(), strict=True)):
        if not takes_step:
            continue
        parts, start = (native.structures["numbers"] * len(parameters))(), 0
        for number, (x, first, second, g) in enumerate(zip(parameters, m, v, gradients, strict=True)):
            own = {"x": x[model], "m": first[model], "v": second[model], "g": g[model]}
            parts[number] = native.pack("numbers", **own, start=start, n=x[model].numel())
            start += x[model].numel()
        corrected = {"rate": rate / (1 - BETA1**step), "scale": (1 - BETA2**step) ** -0.5}
        call("adam", "adam", parts=parts, n=len(parts), **corrected, b1=BETA1, b2=BETA2, eps=EPSILON)
    return None
