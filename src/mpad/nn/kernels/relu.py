"""ReLU with its bias, in one pass."""

import triton
import triton.language as tl
from torch import Tensor

from mpad.nn.kernels.tiles import grid_of_rows, tile_of

_ROWS = 16


@triton.jit
def _bias_relu(x, bias, bias_slab, rows, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < D)
    at = x + (model * rows + row) * D + column
    y = tl.load(at, inside, 0.0) + tl.load(bias + model * bias_slab + column, column < D, 0.0)
    tl.store(at, tl.maximum(y, 0.0), inside)


def bias_relu_(x: Tensor, bias: Tensor) -> Tensor:
    """ReLU(x + b), in place; x contiguous."""
    rows, width = x.shape[-2:]
    tile = tile_of(width, _ROWS)
    _bias_relu[grid_of_rows(x, tile[2])](x, bias, bias.stride(0), rows, *tile)
    return x
