"""How rows are shared out among programs."""

import triton
from torch import Tensor

_TILE = 8_192  # numbers


def grid_of_rows(x: Tensor, rows: int) -> tuple[int, int]:
    """A program for so many rows of each model."""
    return triton.cdiv(x.shape[-2], rows), 1 if x.ndim == 2 else x.shape[0]


def tile_of(width: int, rows: int) -> tuple[int, int, int]:
    """Columns, the tile's width, and its rows: fewer than asked for where rows are long, for registers hold a tile."""
    block = power_of_two(width)
    return width, block, max(1, min(rows, _TILE // block))


def strides(x: Tensor) -> tuple[int, int]:
    """Numbers from one model's slab to the next, and from one row to the next."""
    assert x.stride(-1) == 1, "kernels read rows whose numbers lie side by side"
    return 0 if x.ndim == 2 else x.stride(0), x.stride(-2)


def per_model(row: Tensor) -> tuple[Tensor, int]:
    """A row of numbers, one a model where there are several, and how far apart they are."""
    return row, 0 if row.ndim == 1 else row.stride(0)


def matrix(w: Tensor) -> tuple[Tensor, int]:
    """A weight, one a model where there are several, and how far apart they are."""
    assert w.stride(-1) == 1 and w.stride(-2) == w.shape[-1], "kernels read weights whose rows lie end to end"
    return w, 0 if w.ndim == 2 else w.stride(0)


def power_of_two(n: int) -> int:
    """The width of a tile that holds n columns."""
    return max(16, int(triton.next_power_of_2(n)))
