"""Memory that a step cuts up and the next one finds again: fresh memory costs a fault a page when first written."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from threading import local

import torch
from torch import Tensor

_ALIGN = 16  # numbers
_SMALL = 1_024  # numbers that are no trouble


def _numbers(*shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device="cpu")


class _Room(local):
    """Each thread has its own: models may be trained in several at once."""

    def __init__(self) -> None:
        self.whole: Tensor | None = None  # while a step lasts
        self.kept = _numbers(0)
        self.scratch = _numbers(0)
        self.used = 0  # numbers, by the last step
        self.places = torch.empty(0, dtype=torch.int32, device="cpu")


_room = _Room()


def empty(*shape: int) -> Tensor:
    """Room for so many numbers, until the step ends."""
    n, whole, start = prod(shape), _room.whole, _room.used
    if whole is None or n < _SMALL:
        return _numbers(*shape)
    _room.used = start + -(-n // _ALIGN) * _ALIGN
    if _room.used > whole.shape[0]:  # the next step will have room for it
        return _numbers(*shape)
    cut = _numbers(0)  # no view: a tensor of its own, which autograd may keep while others are written
    return cut.set_(whole.untyped_storage(), start, shape)  # type: ignore[call-overload]


def scratch(*shape: int) -> Tensor:
    """Room for so many numbers, until the next pass asks for some."""
    n = prod(shape)
    if _room.scratch.shape[0] < n:
        _room.scratch = _numbers(n)
    return _room.scratch[:n].view(shape)


def kept(found: Tensor, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    """What the first thread has at the start of its scratch, cut to these sizes, until the step ends."""
    n = sum(sizes)
    return torch.split_with_sizes(empty(n).copy_(found[0, :n]), sizes)


def places(n: int) -> Tensor:
    """N integers, all -1; whoever writes there puts -1 back."""
    if len(_room.places) < n:
        _room.places = torch.full((n,), -1, dtype=torch.int32, device="cpu")
    return _room.places


@contextmanager
def one_step() -> Iterator[None]:
    """While this lasts, what passes give is cut out of memory that is kept; it must not be held any longer."""
    if _room.used > len(_room.kept):
        _room.kept = _numbers(0)  # first give back what was too small
        _room.kept = _numbers(_room.used)
    _room.whole, _room.used = _room.kept, 0
    try:
        yield
    finally:
        _room.whole = None


def forget() -> None:
    """Give the kept memory back."""
    _room.kept, _room.scratch, _room.used = _numbers(0), _numbers(0), 0
    _room.places = torch.empty(0, dtype=torch.int32, device="cpu")
