"""Batch normalisation over rows, of one model or of several stacked ones."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor
from torch.nn import functional

from mpad.ops.dispatch import Changed, operator, use


@operator(cuda="mpad.ops.cuda.batch_norm:batch_norm")
def batch_norm(
    x: Tensor,
    before: Tensor | None,
    gamma: Tensor,
    beta: Tensor,
    running: Changed,
    mask: Tensor | None,
    by_batch: bool,
    momentum: float,
    eps: float,
    relu: bool,
) -> Tensor:
    """Y = (x + b − mean) / √(var + ε) · γ + β over the rows, or the ReLU of that: ([models,] rows, width) → the same.

    by_batch: mean and variance are those of the rows (of those that are not padding: `mask` (models, rows, 1)), and the
    running averages move towards them. A bias b `before` the norm moves the mean and nothing else: it has no gradient,
    and only the running mean knows of it. A batch of one row has no variance, and is normalised as at prediction.

    Where several processes share the batch (`synchronised`), the rows are those of all.

    Otherwise they are the running averages, `running` = [mean, variance], and b has its gradient as all others.
    """
    mean, var = running
    over = synchronised_sum()
    if by_batch and over is not None and x.ndim == 2:
        y = _over_processes(x, before, gamma, beta, mean, var, momentum, eps, over)
    elif not by_batch or (x.ndim == 2 and x.shape[0] < 2):
        bias = None if before is None else before.detach() if by_batch else before
        shifted = x if bias is None else x + bias.unsqueeze(-2)
        y = normalised(shifted, mean, var, gamma, beta, eps)
    elif x.ndim == 2:
        lacking = mean if before is None else mean - before.detach()  # the running mean of what x is
        y = functional.batch_norm(x, lacking, var, gamma, beta, True, momentum, eps)
        if before is not None:
            with torch.no_grad():
                mean.copy_(lacking).add_(before)
    else:
        y = _stacked(x, before, gamma, beta, mean, var, mask, momentum, eps)
    return functional.relu(y) if relu else y


_sum: ContextVar[Callable[[Tensor], Tensor] | None] = ContextVar("mpad.ops.synchronised_sum", default=None)


def synchronised_sum() -> Callable[[Tensor], Tensor] | None:
    """What adds a tensor up over all processes that share a batch, and can be differentiated; None where one has it."""
    return _sum.get()


@contextmanager
def synchronised(over: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """While this lasts, means and variances of a batch are of all processes' rows; the reference alone runs."""
    before = _sum.set(over)
    try:
        with use("reference"):
            yield
    finally:
        _sum.reset(before)


def _over_processes(
    x: Tensor,
    before: Tensor | None,
    gamma: Tensor,
    beta: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
    over: Callable[[Tensor], Tensor],
) -> Tensor:
    """By the rows of all processes together."""
    n = over(x.new_tensor([float(x.shape[0])]))
    mean = over(x.sum(0)) / n
    var = over((x - mean).square().sum(0)) / n
    with torch.no_grad():
        running_mean.lerp_(mean if before is None else mean + before, momentum)
        running_var.lerp_(var * (n / (n - 1).clamp(min=1)), momentum)
    return normalised(x, mean, var, gamma, beta, eps)


def normalised(x: Tensor, mean: Tensor, var: Tensor, gamma: Tensor, beta: Tensor, eps: float) -> Tensor:
    """(x − mean) / √(var + ε) · γ + β."""
    scale = gamma * torch.rsqrt(var + eps)
    return torch.addcmul((beta - mean * scale).unsqueeze(-2), x, scale.unsqueeze(-2))


def _stacked(
    x: Tensor,
    before: Tensor | None,
    gamma: Tensor,
    beta: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    mask: Tensor | None,
    momentum: float,
    eps: float,
) -> Tensor:
    """Each model by its own rows; one with fewer than two of them by its running averages."""
    mask = x.new_ones((*x.shape[:2], 1)) if mask is None else mask
    n = mask.sum(1).to(x.dtype)  # (models, 1)
    share = mask / n.clamp(min=1).unsqueeze(1)
    mean = (x * share).sum(1)
    var = ((x - mean.unsqueeze(1)).square() * share).sum(1)
    enough = n >= 2
    added = torch.zeros_like(running_mean) if before is None else before.detach()
    with torch.no_grad():
        old_mean, old_var = running_mean - added, running_var.clone()
        step = (momentum * enough.to(x.dtype)).expand_as(mean)
        running_mean.lerp_(mean + added, step)
        running_var.lerp_(var * (n / (n - 1).clamp(min=1)), step)
    return normalised(x, torch.where(enough, mean, old_mean), torch.where(enough, var, old_var), gamma, beta, eps)
