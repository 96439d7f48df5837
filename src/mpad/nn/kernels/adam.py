"""Adam over the flat parameters of stacked models, in one launch."""

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _adam(
    x,
    g,
    m,
    v,
    rates,
    steps,
    active,
    n,
    BETA1: tl.constexpr,
    BETA2: tl.constexpr,
    EPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
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


def adam_step(x: Tensor, g: Tensor, m: Tensor, v: Tensor, rates: Tensor, steps: Tensor, active: Tensor) -> None:
    """Update x (models, numbers) by its gradient and its two moments; `steps` counts this step too."""
    models, n = x.shape
    _adam[(triton.cdiv(n, 1024), models)](x, g, m, v, rates, steps, active, n, 0.9, 0.999, 1e-8, 1024)
