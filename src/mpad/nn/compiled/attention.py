"""Attention (nn/readout.py), group by group."""

from ctypes import Structure

import torch
from torch import Tensor

from mpad import native
from mpad.nn.compiled import at, by_rows, call
from mpad.nn.compiled.memory import empty, kept, scratch


class _Attention(Structure):
    _fields_ = native.fields("size h a b v turned y score alpha pooled", "h_row rows groups width bounded")


class _AttentionBack(Structure):
    _fields_ = native.fields("size g h a v y score alpha d_h found", "g_row h_row rows groups width bounded room")


def attend(
    words: Tensor, w: Tensor, bias: Tensor | None, v: Tensor, sizes: Tensor, bounded: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """H, W_A → tanh(H W_A + b); scores and α (words,); u (groups, width). Groups are runs of words of these sizes."""
    words = by_rows(words)
    rows, width = words.shape
    turned, y, pooled = scratch(width, width), empty(rows, width), empty(sizes.shape[0], width)
    score, alpha = empty(rows), torch.empty(rows, dtype=torch.float32, device="cpu")
    arrays = sizes, words, w.contiguous(), bias, v.contiguous(), turned, y, score, alpha, pooled
    call("attention", _Attention(*at(arrays), words.stride(0), rows, sizes.shape[0], width, bounded))
    return y, score, alpha, pooled


def attend_backward(
    g: Tensor,
    behind: Tensor,
    words: Tensor,
    w: Tensor,
    y: Tensor,
    v: Tensor,
    score: Tensor,
    alpha: Tensor,
    sizes: Tensor,
    bounded: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of H, the rows behind its words included; of W_A, of its bias, and of v."""
    g, words = by_rows(g), by_rows(words)
    rows, width = words.shape
    room = width * (width + 2 + native.BLOCK)
    d_h, found = empty(rows + behind.shape[0], width), scratch(torch.get_num_threads(), room)
    d_h[rows:] = behind
    arrays = sizes, g, words, w.contiguous(), v.contiguous(), y, score, alpha, d_h, found
    shape = g.stride(0), words.stride(0), rows, sizes.shape[0], width, bounded, room
    call("attention_back", _AttentionBack(*at(arrays), *shape))
    d_w, d_bias, d_v = kept(found, (width * width, width, width))
    return d_h, d_w.view(width, width), d_bias, d_v.view(1, width)
