"""Tensors from untrusted files: exactly the expected ones."""

import mmap
import os
from collections.abc import Callable, Mapping, Sequence, Set
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from mpad.errors import DamagedModel, ShapeMismatch

Arrays = dict[str, NDArray[Any]]
Expected = Mapping[str, tuple[int | None, ...]]  # name → shape; None means any number
_FLOATS, _INTEGERS, _INT8 = ("F16", "F32", "F64"), ("I32", "I64"), ("I8",)
_COUNTER = "num_batches_tracked"  # of a batch norm, an integer
_TYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I8": "|i1", "I32": "<i4", "I64": "<i8"}


def read_tensors(
    path: Path,
    expected: Expected,
    integers: Set[str] = frozenset(),
    int8: Set[str] = frozenset(),
    memory_mapped: bool = False,
) -> Arrays:
    """Read a safetensors file, checking names, shapes and types before any number is read.

    Tensors hold finite floats, or integers if they are named in `integers` or `int8`; variances are not negative.
    Memory-mapped tensors are read-only views of the file; processes share its pages.
    """

    def kinds(name: str) -> Sequence[str]:
        return _INT8 if name in int8 else _INTEGERS if name in integers or name.endswith(_COUNTER) else _FLOATS

    try:
        before = path.stat()
        with safe_open(path, framework="numpy") as file:
            _check_names(path, set(file.keys()), set(expected))
            for name, shape in expected.items():
                _check_kind(path, name, file.get_slice(name), shape, kinds(name))
            tensor = _map_tensors(path, file, before) if memory_mapped else file.get_tensor
            result = {name: np.asarray(tensor(name)) for name in expected}
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise DamagedModel(f"{path}: not a whole safetensors file: {error}") from None
    for name, value in result.items():
        check_finite(path, name, value)
        if name.endswith("running_var") and (value < 0).any():
            raise DamagedModel(f"{path}: the tensor '{name}' holds variances below zero")
    return result


def check_finite(path: Path, name: str, value: NDArray[Any]) -> None:
    """Raise if a tensor holds NaN or infinity."""
    if value.dtype.kind == "f" and not _is_finite(value):
        raise DamagedModel(f"{path}: the tensor '{name}' holds NaN or infinity")


def _map_tensors(path: Path, file: Any, before: os.stat_result) -> Callable[[str], NDArray[Any]]:
    """Map the file; return a function from name to view. As safetensors checks, tensors have no gaps between them."""
    with path.open("rb") as opened:
        data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        same = os.path.samestat(os.fstat(opened.fileno()), before)
    at = 8 + int.from_bytes(data[:8], "little")
    views: Arrays = {}
    for name in file.offset_keys():
        tensor = file.get_slice(name)
        shape, kind = tensor.get_shape(), np.dtype(_TYPES[tensor.get_dtype()])
        size = prod(shape)
        view = np.frombuffer(data, kind, size, at) if size else np.empty(0, kind)
        views[name] = np.require(view.reshape(shape), requirements="A")  # other writers may not align tensors
        at += size * kind.itemsize
    if not same or at != len(data):
        raise DamagedModel(f"{path}: another file took its place while it was read")
    return views.__getitem__


def is_memory_mapped(array: NDArray[Any]) -> bool:
    """Return whether an array is a view of a mapped file."""
    base: Any = array
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return isinstance(base, mmap.mmap)


def _is_finite(x: NDArray[Any]) -> bool:
    if x.dtype == np.float16 and x.size:  # ten times as fast; NaN and infinity have all exponent bits set
        return bool((x.view(np.int16) & 0x7C00).max() < 0x7C00)
    return bool(np.isfinite(x).all())


def _check_names(path: Path, names: Set[str], expected: Set[str]) -> None:
    if expected - names:
        raise DamagedModel(f"{path}: the tensor '{min(expected - names)}' is missing")
    if names - expected:
        raise DamagedModel(f"{path}: unexpected tensors: {', '.join(sorted(names - expected)[:5])}")


def _check_kind(path: Path, name: str, tensor: Any, shape: Sequence[int | None], kinds: Sequence[str]) -> None:
    result = tuple(tensor.get_shape())
    if len(result) != len(shape) or any(own not in (None, found) for own, found in zip(shape, result, strict=True)):
        asked = tuple("any" if n is None else n for n in shape)
        raise ShapeMismatch(
            f"{path}: the tensor '{name}' has shape {result}, but the configuration asks for {asked}: the files are "
            "not of one model"
        )
    if tensor.get_dtype() not in kinds:
        raise DamagedModel(
            f"{path}: the tensor '{name}' is of type {tensor.get_dtype()}, not one of {', '.join(kinds)}"
        )
