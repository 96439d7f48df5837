"""A node's update (nn/gate.py), strip by strip."""

from ctypes import Structure

import torch
from torch import Tensor

from mpad import native
from mpad.nn.compiled import at, by_rows, call, end_to_end
from mpad.nn.compiled.memory import empty, kept, scratch

Hear = tuple[Tensor, Tensor, bool]  # W₂, b₂, and whether a ReLU follows
Gate = tuple[Tensor, Tensor, Tensor, Tensor]  # the biases, W, the gates' U, U


class _Update(Structure):
    _fields_ = native.fields("h x w2 b2 bias w u v turned message rzc out", "h_row x_row rows width relu")


class _UpdateBack(Structure):
    _fields_ = native.fields("g h x message rzc w2 w u v d_h d_x found", "g_row h_row rows width relu before room")


def update_forward(h: Tensor, x: Tensor, hear: Hear | None, gate: Gate) -> tuple[Tensor, Tensor, Tensor]:
    """What `nn.gate.update_forward` computes: H'; M; (R, Z, C)."""
    h, x = by_rows(h), by_rows(x)
    rows, width = h.shape
    w2, b2, relu = hear or (None, None, False)
    message = x if hear is None else empty(rows, width)
    turned, rzc, out = scratch(7 * width, width), empty(rows, 3 * width), empty(rows, width)
    arrays = h, x, *end_to_end((w2, b2, *gate)), turned, message, rzc, out
    call("update", _Update(*at(arrays), h.stride(0), x.stride(0), rows, width, relu))
    return out, message, rzc


def update_backward(
    g: Tensor,
    h: Tensor,
    x: Tensor,
    message: Tensor,
    rzc: Tensor,
    hear: Hear | None,
    gate: Gate,
    before: bool,
) -> tuple[Tensor, ...]:
    """Gradients of H; of X; of a bias before X; of W₂ and b₂; and of the gate's biases, W, both U."""
    g, h, x = by_rows(g), by_rows(h), x.contiguous()
    rows, width = h.shape
    square = width * width
    w2, _, relu = hear or (None, None, False)
    sizes = 3 * square, 2 * square, square, square, 3 * width, width, width
    room = update_room(width)
    d_h, d_x, found = empty(rows, width), empty(rows, width), scratch(torch.get_num_threads(), room)
    arrays = g, h, x, message, rzc, *end_to_end((w2, *gate[1:])), d_h, d_x, found
    shape = g.stride(0), h.stride(0), rows, width, relu, before, room
    call("update_back", _UpdateBack(*at(arrays), *shape))
    parts = kept(found, sizes)
    d_w, d_u, d_v, d_w2 = (part.view(-1, width) for part in parts[:4])
    d_bias, d_b2, d_before = parts[4:]
    return d_h, d_x, d_before, d_w2, d_b2, d_bias, d_w, d_u, d_v


def update_room(width: int) -> int:
    """Numbers that a thread needs for the derivative: what it has found, and what it works with."""
    return 7 * width * width + 5 * width + (5 * native.BLOCK + native.STRIP) * width
