"""Tables of 8-bit numbers with a scale a row, in a quarter or half of the space: x ≈ scale · n, n from −127 to 127."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SCALES = ".scales"  # after the name of a table
_NARROWEST = 8  # columns: below that, scales would take more space than is won
_LARGEST = 127


def quantised(tensors: Mapping[str, NDArray[Any]], tables: list[str]) -> dict[str, NDArray[Any]]:
    """The same tensors with these tables in 8 bits, their scales beside them, of the type that the table had."""
    result = dict(tensors)
    for name in tables:
        result[name], result[name + _SCALES] = _quantise(tensors[name])
    return result


def wide_tables(tensors: Mapping[str, NDArray[Any]], names: list[str]) -> list[str]:
    """Those of the named tensors that are there, and wide enough for 8 bits to pay."""
    return [name for name in names if name in tensors and tensors[name].shape[1] >= _NARROWEST]


def listed(saved: Any, known: list[str], wrong: Callable[[str], Exception]) -> list[str]:
    """Names of the tables that a folder keeps in 8 bits, as its configuration lists them."""
    if not isinstance(saved, list) or [name for name in known if name in saved] != saved:
        raise wrong(f"'int8': expected some of {', '.join(known)}, in that order")
    return saved


def with_scales(expected: Mapping[str, tuple[int, ...]], tables: list[str]) -> dict[str, tuple[int, ...]]:
    """Shapes of all tensors of a folder, those of the scales included."""
    return {**expected, **{name + _SCALES: expected[name][:1] for name in tables}}


def restored(tensors: Mapping[str, NDArray[Any]], tables: list[str]) -> dict[str, NDArray[Any]]:
    """The tensors with these tables as floats again, of the type of their scales."""
    result = dict(tensors)
    for name in tables:
        scales = result.pop(name + _SCALES)
        with np.errstate(over="ignore"):  # whether numbers are finite is asked of what comes out
            result[name] = (result[name] * scales.astype(np.float32)[:, None]).astype(scales.dtype)
    return result


def _quantise(table: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[Any]]:
    exact = table.astype(np.float32)
    scales = (np.abs(exact).max(axis=1, initial=0) / _LARGEST).astype(table.dtype)
    divisor = np.maximum(scales.astype(np.float32), np.finfo(np.float32).tiny)  # of a row of zeros, anything
    numbers = np.rint(exact / divisor[:, None]).clip(-_LARGEST, _LARGEST)
    return numbers.astype(np.int8), scales
