"""Triton kernels for GPUs: fewer launches and fewer passes over memory.

`network.forward` is MPAD over static batches of several stacked models; without Triton the plain model runs. Rows are
(models, rows, width), the width unit-strided. Without a GPU, Triton's interpreter (TRITON_INTERPRET=1) runs the same
kernels, slowly, for tests.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from math import prod

import torch
from torch import Tensor

from mpad.kernels.cpu import PLAIN

_ALIGN = 32  # numbers


@cache
def available() -> bool:
    """Return whether Triton is installed."""
    return find_spec("triton") is not None


def takes(*tensors: Tensor | None) -> bool:
    """Return whether Triton is installed and these are plain float32 tensors."""
    return available() and all(x is None or (x.dtype is torch.float32 and type(x) in PLAIN) for x in tensors)


class Accumulators:
    """Memory that the kernels of one stream accumulate into, cleared once per step instead of once per kernel.

    It belongs to a stream: the backward of a step runs in a thread of autograd's, but on the stream of the step.
    """

    def __init__(self) -> None:
        self._memory: Tensor | None = None
        self._used = 0  # numbers, beyond the memory there is too: what the next step should have

    def take(self, like: Tensor, shape: Sequence[int]) -> Tensor:
        """Return a tensor of zeros on the same device."""
        size, start = prod(shape), self._used
        self._used += -(-size // _ALIGN) * _ALIGN
        if self._memory is None or self._used > len(self._memory):
            return like.new_zeros(shape)
        return self._memory[start : start + size].view(*shape)

    @contextmanager
    def cleared(self, on: torch.device) -> Iterator[None]:
        """Let kernels on this stream share one cleared tensor, as large as the last step needed."""
        stream = _stream(on)
        self._memory, self._used = torch.zeros(self._used, device=on), 0
        _of_stream[stream] = self
        try:
            yield
        finally:
            del _of_stream[stream]
            self._memory = None


_of_stream: dict[int, Accumulators] = {}


def _stream(device: torch.device) -> int:
    return torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else -1


def zeros(like: Tensor, shape: Sequence[int]) -> Tensor:
    """Return a tensor of zeros on the same device, from the current stream's memory if it has any."""
    result = _of_stream.get(_stream(like.device)) if _of_stream else None
    return like.new_zeros(shape) if result is None else result.take(like, shape)
