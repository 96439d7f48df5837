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


def power_of_two(n: int) -> int:
    """The width of a tile that holds n columns."""
    return max(16, triton.next_power_of_2(n))
