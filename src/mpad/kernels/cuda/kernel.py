"""Triton kernels that can be compiled in parallel, and the assignment of rows to their programs."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch
import triton
from torch import Tensor

_MOST = 16  # threads
_TILE = 8_192  # numbers


class Kernel:
    """A Triton kernel, launched as `kernel[grid](…)`."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        compiling = _of_stream.get(torch.cuda.current_stream().cuda_stream) if _of_stream else None
        if compiling is None:
            launch: Callable[..., None] = self._function[grid]
            return launch
        return lambda *given, **options: compiling.submit(self._function, grid, given, options)


class _Compiling:
    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self.futures: list[Future[Any]] = []

    def submit(self, function: Any, grid: tuple[int, ...], given: tuple[Any, ...], options: dict[str, Any]) -> None:
        device = torch.cuda.current_device()

        def compile() -> None:
            with torch.cuda.device(device):
                function.warmup(*given, grid=grid, **options)

        self.futures.append(self._pool.submit(compile))


_of_stream: dict[int, _Compiling] = {}


def kernel(**options: Any) -> Callable[[Any], Kernel]:
    """Turn a function into a kernel; `options` are those of `triton.jit`."""
    return lambda function: Kernel(triton.jit(**options)(function))


@contextmanager
def compile_ahead() -> Iterator[None]:
    """Compile kernels on the current stream, many at a time, instead of launching them.

    The results of such a step are garbage; it only records which kernels to compile.
    """
    stream = torch.cuda.current_stream().cuda_stream
    with ThreadPoolExecutor(min(_MOST, os.cpu_count() or 1)) as pool:
        compiling = _of_stream[stream] = _Compiling(pool)
        try:
            yield
        finally:
            del _of_stream[stream]
    for future in compiling.futures:
        future.result()


def grid_of_rows(x: Tensor, rows: int) -> tuple[int, int]:
    """Return the grid with one program per block of rows of each model."""
    return triton.cdiv(x.shape[-2], rows), 1 if x.ndim == 2 else x.shape[0]


def tile_of(width: int, rows: int) -> tuple[int, int, int]:
    """Return the columns, the tile's width and its rows: fewer for long rows, because a tile fits into registers."""
    block = power_of_two(width)
    return width, block, max(1, min(rows, _TILE // block))


def strides(x: Tensor) -> tuple[int, int]:
    """Return the strides of models and rows."""
    assert x.stride(-1) == 1, "kernels read rows whose numbers lie side by side"
    return 0 if x.ndim == 2 else x.stride(0), x.stride(-2)


def per_model(row: Tensor) -> tuple[Tensor, int]:
    """Return a vector, one per model if there are several, and its model stride."""
    return row, 0 if row.ndim == 1 else row.stride(0)


def matrix(w: Tensor) -> tuple[Tensor, int]:
    """Return a weight, one per model if there are several, and its model stride."""
    assert w.stride(-1) == 1 and w.stride(-2) == w.shape[-1], "kernels read weights whose rows lie end to end"
    return w, 0 if w.ndim == 2 else w.stride(0)


def power_of_two(n: int) -> int:
    """Return the width of a tile for n columns."""
    return max(16, int(triton.next_power_of_2(n)))
