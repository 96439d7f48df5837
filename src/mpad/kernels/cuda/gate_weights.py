"""Gradients of all weights of an update at once: sums over thousands of rows, split across the GPU.

Seven tiles a model: what belongs to R, Z and C against messages, to R and Z against states, to C against R ⊙ H, and
the message against what it was made of. One launch keeps the GPU busy with few pieces of each, and few additions that
must not be torn.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mpad.kernels.cuda.accumulators import zeros
from mpad.kernels.cuda.kernel import kernel
from mpad.kernels.cuda.tiles import power_of_two, strides

_ROWS = 64  # read at a time
_PROGRAMS = 264  # two for each multiprocessor of a large GPU


@kernel(do_not_specialize=["rows", "chunk"])
def _gradients(
    d_rzc, d_m, m, m_slab, m_row, h, h_slab, h_row, reset_h, x, x_slab, x_row, d_w, d_b, rows, chunk,
    PARTS: tl.constexpr, HALF: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    split, part, model = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    column = tl.arange(0, BLOCK)
    in_row = column < D
    g, g_row = d_rzc + model * rows * 3 * D + (part % 3) * D, 3 * D
    y, y_row = m + model * m_slab, m_row
    if part >= 3:
        y, y_row = h + model * h_slab, h_row
    if part == 5:
        y, y_row = reset_h + model * rows * D, D
    if part == 6:
        g, g_row = d_m + model * rows * D, D
        y, y_row = x + model * x_slab, x_row
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    bias = tl.zeros((BLOCK,), tl.float32)
    for start in range(split * chunk, tl.minimum(split * chunk + chunk, rows), ROWS):
        row = start + tl.arange(0, ROWS)[:, None]
        inside = (row < rows) & in_row[None, :]
        a = tl.load(g + row * g_row + column[None, :], inside, 0.0)
        b = tl.load(y + row * y_row + column[None, :], inside, 0.0)
        if HALF:
            total += tl.dot(tl.trans(a.to(tl.bfloat16)), b.to(tl.bfloat16))
        else:
            total += tl.dot(tl.trans(a), b, input_precision="ieee")
        bias += tl.sum(a, 0)
    at = d_w + ((model * PARTS + part) * D + column[:, None]) * D + column[None, :]
    tl.atomic_add(at, total, in_row[:, None] & in_row[None, :], sem="relaxed")
    tl.atomic_add(d_b + (model * PARTS + part) * D + column, bias, in_row, sem="relaxed")


def gate_weight_gradients(
    d_rzc: Tensor, d_m: Tensor, m: Tensor, h: Tensor, reset_h: Tensor, x: Tensor | None
) -> tuple[tuple[Tensor, ...], tuple[Tensor | None, Tensor | None]]:
    """Return the gradients of the biases, W, the gates' U and U, and of W₂ and b₂ if the update has them.

    If lower precision is allowed, factors are rounded to bfloat16: tensor cores transpose it on the way.
    """
    rows, width = h.shape[-2:]
    models, parts, block = h.shape[0] if h.ndim == 3 else 1, 6 if x is None else 7, power_of_two(width)
    sums = zeros(h, (models * parts * width * (width + 1),))
    d_w = sums[: models * parts * width * width].view(*h.shape[:-2], parts, width, width)
    d_b = sums[models * parts * width * width :].view(*h.shape[:-2], parts * width)
    chunk = triton.cdiv(triton.cdiv(rows, max(1, _PROGRAMS // (parts * models))), _ROWS) * _ROWS
    half = torch.get_float32_matmul_precision() != "highest"
    x = m if x is None else x
    _gradients[(triton.cdiv(rows, chunk), parts, models)](
        d_rzc, d_m, m, *strides(m), h, *strides(h), reset_h, x, *strides(x), d_w, d_b, rows, chunk,
        parts, half, width, block, _ROWS,
    )  # fmt: skip
    w, u, u_reset = (d_w[..., first:last, :, :].flatten(-3, -2) for first, last in ((0, 3), (3, 5), (5, 6)))
    gate = d_b[..., : 3 * width], w, u, u_reset
    return gate, (None, None) if parts == 6 else (d_w[..., 6, :, :], d_b[..., 6 * width :])
