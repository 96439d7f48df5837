"""Triton kernels that can be compiled in parallel."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch
import triton

_MOST = 16  # threads


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
