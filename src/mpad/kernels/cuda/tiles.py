"""Assignment of rows to programs."""

import triton
from torch import Tensor

_TILE = 8_192  # numbers


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
