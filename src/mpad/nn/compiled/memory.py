"""Memory that a step cuts up and the next one finds again: fresh memory costs a fault a page when first written."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from threading import local

import torch
from torch import Tensor

_ALIGN = 16  # numbers
_SMALL = 1_024  # numbers that are no trouble


class _Room(local):
    """Each thread has its own: models may be trained in several at once."""

    def __init__(self) -> None:
        self.whole: Tensor | None = None  # while a step lasts
        self.kept = torch.empty(0)
        self.used = 0  # numbers, by the last step
        self.places = torch.empty(0, dtype=torch.int32)


_room = _Room()


def empty(*shape: int) -> Tensor:
    """Room for so many numbers, until the step ends."""
    n, whole, start = prod(shape), _room.whole, _room.used
    if whole is None or n < _SMALL:
        return torch.empty(shape)
    _room.used = start + -(-n // _ALIGN) * _ALIGN
    if _room.used > whole.shape[0]:  # the next step will have room for it
        return torch.empty(shape)
    cut = torch.empty(0)  # no view: a tensor of its own, which autograd may keep while others are written
    return cut.set_(whole.untyped_storage(), start, shape)  # type: ignore[call-overload]


def places(n: int) -> Tensor:
    """N integers, all -1; whoever writes there puts -1 back."""
    if len(_room.places) < n:
        _room.places = torch.full((n,), -1, dtype=torch.int32)
    return _room.places


@contextmanager
def one_step() -> Iterator[None]:
    """While this lasts, what passes give is cut out of memory that is kept; it must not be held any longer."""
    if _room.used > len(_room.kept):
        _room.kept = torch.empty(0)  # first give back what was too small
        _room.kept = torch.empty(_room.used)
    _room.whole, _room.used = _room.kept, 0
    try:
        yield
    finally:
        _room.whole = None


def forget() -> None:
    """Give the kept memory back."""
    _room.kept, _room.used, _room.places = torch.empty(0), 0, torch.empty(0, dtype=torch.int32)
