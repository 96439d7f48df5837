"""Operators on a CPU, by native/kernels.c: what its passes share stays in the cache, and few calls are made.

The bindings check sizes and types; the C below trusts them.
"""

import ctypes
from functools import cache
from typing import Any

import torch
from torch import Tensor

from mpad.kernels import native
from mpad.ops.dispatch import PLAIN


@cache
def library() -> Any:
    """The library with torch's own threads; None where either is missing."""
    native.report_missing()
    if native.library is None:
        return None
    try:  # torch has brought its OpenMP into the process
        process = ctypes.CDLL(None)
        threads = process.GOMP_parallel, process.omp_get_thread_num, process.omp_get_num_threads
    except (OSError, AttributeError, TypeError):
        return None
    native.library.mpad_threads(*[ctypes.cast(function, ctypes.c_void_p) for function in threads])
    return native.library


def takes(*tensors: Tensor | None) -> bool:
    """Whether there is a library, and it takes tensors like these: float32, in this process's memory."""
    if library() is None:
        return False
    for x in tensors:
        if x is not None and (x.dtype is not torch.float32 or not x.is_cpu or type(x) not in PLAIN):
            return False
    return True


def wants_gradient(*tensors: Tensor | None) -> bool:
    """Whether the derivative by any of them may be asked for."""
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


def call(name: str, structure: str, /, **fields: Any) -> None:
    """Run a kernel on as many threads as torch uses; `structure` is its argument's name in abi.h."""
    of = native.pack(structure, **fields)
    _kernel(name)(ctypes.addressof(of), torch.get_num_threads())


@cache
def _kernel(name: str) -> Any:
    kernel = getattr(library(), f"mpad_{name}")
    kernel.argtypes = [ctypes.c_void_p, ctypes.c_long]
    return kernel


def contiguous(*tensors: Tensor | None) -> list[Tensor | None]:
    """The same tensors without gaps between their rows."""
    return [None if x is None else x.contiguous() for x in tensors]


def by_rows(x: Tensor) -> Tensor:
    """The same with numbers of a row side by side, and memory for every row."""
    return x if x.stride(1) == 1 and x.stride(0) != 0 else x.contiguous()
