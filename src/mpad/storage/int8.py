"""Tables of 8-bit numbers with a scale per row, in a quarter or half of the space: x ≈ scale · n, −127 ≤ n ≤ 127."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SCALES = ".scales"  # suffix of a table's name
_NARROWEST = 8  # columns; in narrower tables scales take more space than is saved
_LARGEST = 127


def quantize_tables(tensors: Mapping[str, NDArray[Any]], tables: list[str]) -> dict[str, NDArray[Any]]:
    """Return the tensors with these tables in 8 bits; their scales keep the type of the table."""
    result = dict(tensors)
    for name in tables:
        result[name], result[name + _SCALES] = _quantize(tensors[name])
    return result


def wide_tables(tensors: Mapping[str, NDArray[Any]], names: list[str]) -> list[str]:
    """Return the names of tables that exist and are wide enough to save space in 8 bits."""
    return [name for name in names if name in tensors and tensors[name].shape[1] >= _NARROWEST]


def check_names(saved: Any, known: list[str], wrong: Callable[[str], Exception]) -> list[str]:
    """Check the names of 8-bit tables in a folder's configuration."""
    if not isinstance(saved, list) or [name for name in known if name in saved] != saved:
        raise wrong(f"'int8': expected some of {', '.join(known)}, in that order")
    return saved


def with_scales(expected: Mapping[str, tuple[int, ...]], tables: list[str]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all tensors of a folder, scales included."""
    return {**expected, **{name + _SCALES: expected[name][:1] for name in tables}}


def dequantize_tables(tensors: Mapping[str, NDArray[Any]], tables: list[str]) -> dict[str, NDArray[Any]]:
    """Return the tensors with these tables as floats, of the type of their scales."""
    result = dict(tensors)
    for name in tables:
        scales = result.pop(name + _SCALES)
        with np.errstate(over="ignore"):  # the caller checks that the result is finite
            result[name] = (result[name] * scales.astype(np.float32)[:, None]).astype(scales.dtype)
    return result


def _quantize(table: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[Any]]:
    exact = table.astype(np.float32)
    scales = (np.abs(exact).max(axis=1, initial=0) / _LARGEST).astype(table.dtype)
    divisor = np.maximum(scales.astype(np.float32), np.finfo(np.float32).tiny)  # any divisor serves a row of zeros
    numbers = np.rint(exact / divisor[:, None]).clip(-_LARGEST, _LARGEST)
    return numbers.astype(np.int8), scales
