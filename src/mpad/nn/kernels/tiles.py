"""How rows are shared out among programs."""

import triton
from torch import Tensor


def grid_of_rows(x: Tensor, rows: int) -> tuple[int, int]:
    """A program for so many rows of each model."""
    return triton.cdiv(x.shape[-2], rows), 1 if x.ndim == 2 else x.shape[0]


def strides(x: Tensor) -> tuple[int, int]:
    """Numbers from one model's slab to the next, and from one row to the next."""
    assert x.stride(-1) == 1, "kernels read rows whose numbers lie side by side"
    return 0 if x.ndim == 2 else x.stride(0), x.stride(-2)


def power_of_two(n: int) -> int:
    """The width of a tile that holds n columns."""
    return max(16, triton.next_power_of_2(n))
