"""A node's update on a CPU, by native/passes.c: strip by strip, so that what passes share stays in the cache."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, Structure, c_long, c_void_p
from dataclasses import dataclass
from functools import cache
from math import prod
from threading import local
from typing import Any

import torch
from torch import Tensor

from mpad import native

_BLOCK, _STRIP = 96, 24  # rows, as in passes.c
_ALIGN = 16  # numbers


class _Update(Structure):
    _fields_ = native.fields("h x w2 b2 bias w u v turned message rzc out", "h_row x_row rows width")


class _UpdateBack(Structure):
    _fields_ = native.fields("g h x message rzc w2 w u v d_h d_x found", "g_row h_row rows width before room")


class _Mean(Structure):
    _fields_ = native.fields(
        "size source target weight share part bias x y", "x_row words edges graphs width master back"
    )


class _Attention(Structure):
    _fields_ = native.fields("size h a b v turned y score alpha pooled", "h_row rows groups width bounded")


class _AttentionBack(Structure):
    _fields_ = native.fields("size g h a v y score alpha d_h found", "g_row h_row rows groups width bounded room")


class _Room(local):
    """Memory that a step cuts up and the next one finds again: fresh memory costs a fault a page when first written.

    Each thread has its own: models may be trained in several at once.
    """

    def __init__(self) -> None:
        self.whole: Tensor | None = None  # while a step lasts
        self.kept = torch.empty(0)
        self.used = 0  # numbers, by the last step

    def empty(self, *shape: int) -> Tensor:
        if self.whole is None:
            return torch.empty(shape)
        start = self.used
        self.used += -(-prod(shape) // _ALIGN) * _ALIGN
        if self.used > len(self.whole):  # the next step will have room for it
            return torch.empty(shape)
        cut = torch.empty(0)  # no view: a tensor of its own, which autograd may keep while others are written
        return cut.set_(self.whole.untyped_storage(), start, shape)  # type: ignore[call-overload]


_room = _Room()


@contextmanager
def one_step() -> Iterator[None]:
    """While this lasts, what passes give is cut out of memory that is kept; it must not be held any longer."""
    if _room.used > len(_room.kept):
        _room.kept = torch.empty(_room.used)
    _room.whole, _room.used = _room.kept, 0
    try:
        yield
    finally:
        _room.whole = None


def forget() -> None:
    """Give the kept memory back."""
    _room.kept, _room.used = torch.empty(0), 0


@dataclass(frozen=True)
class Edges:
    """The edges of graphs of words whose rows stand graph by graph, sorted by target, and masters' rows last."""

    arrays: tuple[Tensor, ...]  # words of each graph; source, target and weight of each edge; share, part
    words: int
    master: bool


@cache
def _library() -> Any:
    """The library with torch's own threads; None where either is missing."""
    if native.library is None:
        return None
    try:  # torch has brought its OpenMP into the process
        process = ctypes.CDLL(None)
        threads = process.GOMP_parallel, process.omp_get_thread_num, process.omp_get_num_threads
    except (OSError, AttributeError, TypeError):
        return None
    native.library.mpad_threads(*[ctypes.cast(function, c_void_p) for function in threads])
    native.library.mpad_update.argtypes = [POINTER(_Update), c_long]
    native.library.mpad_update_back.argtypes = [POINTER(_UpdateBack), c_long]
    native.library.mpad_mean.argtypes = [POINTER(_Mean), c_long]
    native.library.mpad_attention.argtypes = [POINTER(_Attention), c_long]
    native.library.mpad_attention_back.argtypes = [POINTER(_AttentionBack), c_long]
    return native.library


def run_on(h: Tensor) -> bool:
    """Whether the compiled passes take these rows."""
    fine = h.device.type == "cpu" and h.ndim == 2 and h.dtype == torch.float32 and native.fits(h.shape[1])
    return fine and _library() is not None


def update_forward(
    h: Tensor, x: Tensor, hear: tuple[Tensor, Tensor, bool] | None, gate: tuple[Tensor, Tensor, Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """What `nn.gate.update_forward` computes: H'; M, or X where M is a linear map of it; (R, Z, C)."""
    h, x = _by_rows(h), _by_rows(x)
    rows, width = h.shape
    hear, gate = _merged(hear, gate)
    bias, w, u, v = gate
    w2, b2, _ = hear or (None, None, False)
    empty = _room.empty
    message = x if hear is None else empty(rows, width)
    turned, rzc, out = empty(7 * width, width), empty(rows, 3 * width), empty(rows, width)
    arrays = h, x, w2, b2, bias, *[weight.contiguous() for weight in (w, u, v)], turned, message, rzc, out
    of = _Update(*[_at(part) for part in arrays], h.stride(0), x.stride(0), rows, width)
    _library().mpad_update(of, torch.get_num_threads())
    return out, message, rzc


def update_backward(
    g: Tensor,
    h: Tensor,
    x: Tensor,
    message: Tensor,
    rzc: Tensor,
    hear: tuple[Tensor, Tensor, bool] | None,
    gate: tuple[Tensor, Tensor, Tensor, Tensor],
    before: bool,
) -> tuple[Tensor, ...]:
    """Gradients of H; of X; of a bias before X; of W₂ and b₂; and of the gate's biases, W, both U."""
    g, h, x, threads = _by_rows(g), _by_rows(h), x.contiguous(), torch.get_num_threads()
    rows, width = h.shape
    square = width * width
    own, (_, *maps) = _merged(hear, gate)
    sizes = 3 * square, 2 * square, square, square, 3 * width, width, width
    room = sum(sizes) + (5 * _BLOCK + _STRIP) * width
    d_h, d_x, found = _room.empty(rows, width), _room.empty(rows, width), _room.empty(threads, room)
    arrays = g, h, x, message, rzc, None if own is None else own[0], *maps, d_h, d_x, found
    shape = g.stride(0), h.stride(0), rows, width, before, room
    _library().mpad_update_back(_UpdateBack(*[_at(part) for part in arrays], *shape), threads)
    parts = found[0, : sum(sizes)].split(sizes)
    d_w, d_u, d_v, d_w2 = (part.view(-1, width) for part in parts[:4])
    d_bias, d_b2, d_before = parts[4:]
    if hear is not None and own is None:  # of W W₂ and W b₂ + b to those of its parts
        w2, b2, _ = hear
        d_w2, d_b2 = gate[1].t() @ d_w, d_bias @ gate[1]
        d_w = torch.addr(d_w @ w2.t(), d_bias, b2)
    return d_h, d_x, d_before, d_w2, d_b2, d_bias, d_w, d_u, d_v


def _merged(
    hear: tuple[Tensor, Tensor, bool] | None, gate: tuple[Tensor, Tensor, Tensor, Tensor]
) -> tuple[tuple[Tensor, Tensor, bool] | None, tuple[Tensor, Tensor, Tensor, Tensor]]:
    """A map of X without a ReLU merges into what the gate does with M: W (X W₂ + b₂) = X (W W₂) + W b₂."""
    if hear is None or hear[2]:
        return hear, gate
    (w2, b2, _), (bias, w, *rest) = hear, gate
    return None, (torch.addmv(bias, w, b2), w @ w2, *rest)  # type: ignore[return-value]


def mean(edges: Edges, x: Tensor, bias: Tensor | None = None, back: bool = False) -> Tensor:
    """D⁻¹ A x, or ReLU(D⁻¹ A x + b), or (D⁻¹ A)ᵀ x."""
    x = _by_rows(x)
    y = _room.empty(*x.shape)
    places = [_at(part) for part in (*edges.arrays, bias, x, y)]
    shape = x.stride(0), edges.words, len(edges.arrays[1]), len(edges.arrays[0]), x.shape[1], edges.master, back
    _library().mpad_mean(_Mean(*places, *shape), torch.get_num_threads())
    return y


def attend(
    words: Tensor, w: Tensor, bias: Tensor | None, v: Tensor, sizes: Tensor, bounded: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """H, W_A → tanh(H W_A + b); scores and α (words,); u (groups, width). Groups are runs of words of these sizes."""
    words = _by_rows(words)
    rows, width = words.shape
    turned, y, pooled = _room.empty(width, width), _room.empty(rows, width), _room.empty(len(sizes), width)
    score, alpha = _room.empty(rows), torch.empty(rows)
    arrays = sizes, words, w.contiguous(), bias, v.contiguous(), turned, y, score, alpha, pooled
    of = _Attention(*[_at(part) for part in arrays], words.stride(0), rows, len(sizes), width, bounded)
    _library().mpad_attention(of, torch.get_num_threads())
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
    g, words, threads = _by_rows(g), _by_rows(words), torch.get_num_threads()
    rows, width = words.shape
    room = width * (width + 2 + _BLOCK)
    d_h, found = _room.empty(rows + len(behind), width), _room.empty(threads, room)
    d_h[rows:] = behind
    arrays = sizes, g, words, w.contiguous(), v.contiguous(), y, score, alpha, d_h, found
    shape = g.stride(0), words.stride(0), rows, len(sizes), width, bounded, room
    _library().mpad_attention_back(_AttentionBack(*[_at(part) for part in arrays], *shape), threads)
    d_w, d_bias, d_v = found[0, : width * (width + 2)].split((width * width, width, width))
    return d_h, d_w.view(width, width), d_bias, d_v.view(1, width)


def _by_rows(x: Tensor) -> Tensor:
    return x if x.stride(1) == 1 else x.contiguous()


def _at(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()
