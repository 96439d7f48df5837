"""Tensors of a file that nobody vouches for: those that are expected, and no others."""

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from mpad.errors import DamagedModel, ShapeMismatch

Arrays = dict[str, NDArray[Any]]
Expected = Mapping[str, tuple[int | None, ...]]  # name → shape; None stands for any number
_FLOATS, _INTEGERS = ("F16", "F32", "F64"), ("I32", "I64")


def read_tensors(path: Path, expected: Expected, integers: Set[str] = frozenset()) -> Arrays:
    """Read a safetensors file whose names, shapes and types are known before any of its numbers is read.

    Tensors hold finite floats, or integers where their names say so; variances are not below zero.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            _check_names(path, set(file.keys()), set(expected))
            for name, shape in expected.items():
                _check_kind(path, name, file.get_slice(name), shape, name in integers or _counts(name))
            result = {name: np.asarray(file.get_tensor(name)) for name in expected}
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise DamagedModel(f"{path}: not a whole safetensors file: {error}") from None
    for name, value in result.items():
        if value.dtype.kind == "f" and not _finite(value):
            raise DamagedModel(f"{path}: the tensor '{name}' holds NaN or infinity")
        if name.endswith("running_var") and (value < 0).any():
            raise DamagedModel(f"{path}: the tensor '{name}' holds variances below zero")
    return result


def _finite(x: NDArray[Any]) -> bool:
    if x.dtype == np.float16 and x.size:  # ten times as fast: NaN and infinity have all bits of the exponent set
        return bool((x.view(np.int16) & 0x7C00).max() < 0x7C00)
    return bool(np.isfinite(x).all())


def _counts(name: str) -> bool:
    return name.endswith("num_batches_tracked")


def _check_names(path: Path, names: Set[str], expected: Set[str]) -> None:
    if expected - names:
        raise DamagedModel(f"{path}: the tensor '{min(expected - names)}' is missing")
    if names - expected:
        raise DamagedModel(f"{path}: unexpected tensors: {', '.join(sorted(names - expected)[:5])}")


def _check_kind(path: Path, name: str, tensor: Any, shape: Sequence[int | None], whole: bool) -> None:
    result, kinds = tuple(tensor.get_shape()), _INTEGERS if whole else _FLOATS
    if len(result) != len(shape) or any(own not in (None, there) for own, there in zip(shape, result, strict=True)):
        asked = tuple("any" if n is None else n for n in shape)
        raise ShapeMismatch(
            f"{path}: the tensor '{name}' has shape {result}, but the configuration asks for {asked}: the files are "
            "not of one model"
        )
    if tensor.get_dtype() not in kinds:
        raise DamagedModel(
            f"{path}: the tensor '{name}' is of type {tensor.get_dtype()}, not one of {', '.join(kinds)}"
        )
