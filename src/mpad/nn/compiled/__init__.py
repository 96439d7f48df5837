"""Training's inner loops on a CPU, by native/passes.c: what passes share stays in the cache, and few calls are made.

The layers' torch code is the fallback and the reference.
"""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from mpad import native

_WITH_THREADS = (
    "update", "update_back", "mean", "attention", "attention_back", "linear", "linear_back", "embed", "drop", "gather",
    "scatter", "norm", "norm_back", "adam", "round", "round_back", "authors", "authors_back",
    "readouts", "readouts_back",
)  # fmt: skip


@cache
def library() -> Any:
    """The library with torch's own threads; None where either is missing."""
    if native.library is None:
        return None
    try:  # torch has brought its OpenMP into the process
        process = ctypes.CDLL(None)
        threads = process.GOMP_parallel, process.omp_get_thread_num, process.omp_get_num_threads
    except (OSError, AttributeError, TypeError):
        return None
    native.library.mpad_threads(*[ctypes.cast(function, ctypes.c_void_p) for function in threads])
    for name in _WITH_THREADS:
        getattr(native.library, f"mpad_{name}").argtypes = [ctypes.c_void_p, ctypes.c_long]
    return native.library


def takes(x: Tensor) -> bool:
    """Whether the compiled passes take such numbers."""
    return x.is_cpu and x.dtype == torch.float32 and library() is not None


def run_on(h: Tensor, weights: Sequence[Tensor | None] = ()) -> bool:
    """Whether they take these rows, and weights of their kind."""
    alike = all(weight is None or (weight.dtype == h.dtype and weight.is_cpu) for weight in weights)
    return takes(h) and h.ndim == 2 and native.fits(h.shape[1]) and alike


def call(name: str, of: ctypes.Structure) -> None:
    """Run a pass on as many threads as torch uses."""
    getattr(library(), f"mpad_{name}")(ctypes.addressof(of), torch.get_num_threads())


def at(arrays: Sequence[Tensor | None]) -> list[int | None]:
    """Where tensors begin."""
    return [None if array is None else array.data_ptr() for array in arrays]


def end_to_end(weights: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The same weights with no gaps between their rows."""
    return [None if weight is None else weight.contiguous() for weight in weights]


def by_rows(x: Tensor) -> Tensor:
    """The same with numbers of a row side by side, and a place for every row."""
    return x if x.stride(1) == 1 and x.stride(0) != 0 else x.contiguous()
