"""Room that kernels add up into: cleared once a step instead of once a kernel."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod

import torch
from torch import Tensor

_ALIGN = 32  # numbers


class _Pool:
    def __init__(self) -> None:
        self.room: Tensor | None = None
        self.used = 0  # numbers, of the pool and beyond: what the next pool should hold


_pool = _Pool()


def zeros(like: Tensor, shape: Sequence[int]) -> Tensor:
    """A tensor of zeros on the same device."""
    size = prod(shape)
    start = _pool.used
    _pool.used += -(-size // _ALIGN) * _ALIGN
    if _pool.room is None or _pool.used > len(_pool.room) or _pool.room.device != like.device:
        return like.new_zeros(shape)
    return _pool.room[start : start + size].view(*shape)


@contextmanager
def cleared(on: torch.device, size: int) -> Iterator[_Pool]:
    """While this lasts, `zeros` cuts up one cleared tensor of that size."""
    _pool.room, _pool.used = torch.zeros(size, device=on), 0
    try:
        yield _pool
    finally:
        _pool.room = None
