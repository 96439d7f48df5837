"""Adam over the flat parameters of stacked models, in one launch."""

import triton
import triton.language as tl
from torch import Tensor

from mpad.kernels.cuda.kernel import kernel

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # torch's defaults
_BLOCK = 1024  # numbers of a program


@kernel()
def _adam(
    x, g, m, v, rates, steps, active, n,
    BETA1: tl.constexpr, BETA2: tl.constexpr, EPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    model, column = tl.program_id(1).to(tl.int64), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.load(active + model) > 0:
        inside = column < n
        at = model * n + column
        step = tl.load(steps + model).to(tl.float32)
        gradient = tl.load(g + at, inside, 0.0)
        first = BETA1 * tl.load(m + at, inside, 0.0) + (1.0 - BETA1) * gradient
        second = BETA2 * tl.load(v + at, inside, 0.0) + (1.0 - BETA2) * gradient * gradient
        hat1 = first / (1.0 - tl.exp(step * tl.log(BETA1 + 0.0)))
        hat2 = second / (1.0 - tl.exp(step * tl.log(BETA2 + 0.0)))
        value = tl.load(x + at, inside, 0.0) - tl.load(rates + model) * hat1 / (tl.sqrt(hat2) + EPS)
        tl.store(x + at, value, inside)
        tl.store(m + at, first, inside)
        tl.store(v + at, second, inside)


def adam_step(
    parameters: list[Tensor],
    gradients: list[Tensor],
    m: list[Tensor],
    v: list[Tensor],
    rates: Tensor,
    steps: Tensor,
    active: Tensor,
) -> None:
    """Take a step with one launch per tensor (models, numbers)."""
    for x, g, first, second in zip(parameters, gradients, m, v, strict=True):
        models, n = x.shape
        grid = triton.cdiv(n, _BLOCK), models
        _adam[grid](x, g.contiguous(), first, second, rates, steps, active, n, BETA1, BETA2, EPSILON, _BLOCK)
