"""A network's first weights: drawn from a generator of their own, and refused where they cannot fit."""

import os
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from mpad.errors import InputError


class Seeded(TorchFunctionMode):
    """While this lasts, this thread's random numbers come from a generator of their own, not from torch's global one.

    Threads that fit at the same time share the global one, and would take each other's numbers.
    """

    _DRAWS = frozenset(
        "uniform_ normal_ bernoulli_ random_ rand randn randint randperm trunc_normal_ orthogonal_ "
        "kaiming_uniform_ kaiming_normal_ xavier_uniform_ xavier_normal_".split()
    )

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if getattr(func, "__name__", "") in self._DRAWS and kwargs.get("generator") is None:
            kwargs["generator"] = self._generator
        return func(*args, **kwargs)


def check_memory(numbers: int) -> None:
    """Refuse a network that cannot fit: weights, gradients and Adam's two moments, four bytes each."""
    needed = 16 * numbers
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else needed
    if needed > there:
        raise InputError(
            f"this network has {numbers:,} parameters, word vectors included, and takes {needed / 1e9:,.0f} GB to "
            f"train; this machine has {there / 1e9:,.0f} GB: make it narrower (hidden) or its vectors fewer (min_count)"
        )
