"""Memory that training steps reuse: new memory costs a page fault per page."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from threading import local

import torch
from torch import Tensor

_ALIGN = 16  # numbers
_SMALL = 1_024  # numbers that are not worth it


def _new(*shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device="cpu")


class _Workspace(local):
    """The memory of one thread; several threads may train at once."""

    def __init__(self) -> None:
        self.current: Tensor | None = None  # while a step lasts
        self.memory = _new(0)
        self.scratch = _new(0)
        self.used = 0  # numbers, by the last step
        self.markers = torch.empty(0, dtype=torch.int32, device="cpu")


_workspace = _Workspace()


def allocate(*shape: int) -> Tensor:
    """Allocate a float32 tensor that lives until the step ends."""
    n, memory, start = prod(shape), _workspace.current, _workspace.used
    if memory is None or n < _SMALL:
        return _new(*shape)
    _workspace.used = start + -(-n // _ALIGN) * _ALIGN
    if _workspace.used > memory.shape[0]:  # the next step will have enough
        return _new(*shape)
    cut = _new(0)  # no view: a tensor of its own, which autograd may keep while others are written
    cut.set_(memory.untyped_storage(), start, shape)  # type: ignore[call-overload]
    return cut


def scratch(n: int) -> Tensor:
    """Return memory for n numbers, valid until the next call."""
    if _workspace.scratch.shape[0] < n:
        _workspace.scratch = _new(n)
    return _workspace.scratch[:n]


def markers(n: int) -> Tensor:
    """Return n integers, all -1; the caller restores them to -1."""
    if len(_workspace.markers) < n:
        _workspace.markers = torch.full((n,), -1, dtype=torch.int32, device="cpu")
    return _workspace.markers


@contextmanager
def one_step() -> Iterator[None]:
    """Let `allocate` reuse memory inside this context; its tensors must not outlive it."""
    if _workspace.used > len(_workspace.memory):
        _workspace.memory = _new(0)  # first give back what was too small
        _workspace.memory = _new(_workspace.used)
    _workspace.current, _workspace.used = _workspace.memory, 0
    try:
        yield
    finally:
        _workspace.current = None


def release() -> None:
    """Free the memory."""
    _workspace.memory, _workspace.scratch, _workspace.used = _new(0), _new(0), 0
    _workspace.markers = torch.empty(0, dtype=torch.int32, device="cpu")
