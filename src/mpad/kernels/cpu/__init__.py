"""Bindings of the C kernels in `mpad.native`: few calls, and intermediate results that stay in the cache.

The bindings check sizes and types; the C code trusts them.
"""

import ctypes
from functools import cache
from typing import Any

import torch
from torch import Tensor

from mpad import native

PLAIN = {Tensor, torch.nn.Parameter}  # classes whose memory can be read; a tracer's tensors have none


@cache
def library() -> Any:
    """Return the library, set up to use torch's threads; None if either is missing."""
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
    """Return whether the library is available and these tensors are float32 in CPU memory."""
    if library() is None:
        return False
    for x in tensors:
        if x is not None and (x.dtype is not torch.float32 or not x.is_cpu or type(x) not in PLAIN):
            return False
    return True


def wants_gradient(*tensors: Tensor | None) -> bool:
    """Return whether a gradient may be needed for any of these."""
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


def call(name: str, structure: str, /, **fields: Any) -> None:
    """Run a kernel on as many threads as torch uses; `structure` names its argument in abi.h."""
    of = native.pack(structure, **fields)
    _kernel(name)(ctypes.addressof(of), torch.get_num_threads())


@cache
def _kernel(name: str) -> Any:
    kernel = getattr(library(), f"mpad_{name}")
    kernel.argtypes = [ctypes.c_void_p, ctypes.c_long]
    return kernel


def contiguous(*tensors: Tensor | None) -> list[Tensor | None]:
    """Return the tensors with contiguous memory."""
    return [None if x is None else x.contiguous() for x in tensors]


def by_rows(x: Tensor) -> Tensor:
    """Return x with each row contiguous and in memory of its own."""
    return x if x.stride(1) == 1 and x.stride(0) != 0 else x.contiguous()
