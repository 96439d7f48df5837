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

_PANEL = 64  # as in passes.c
_ALIGN = 16  # numbers


class _Update(Structure):
    _fields_ = native.fields("h x w2 b2 bias w u v message rzc reset_h out", "h_row x_row rows width relu")


class _UpdateBack(Structure):
    _fields_ = native.fields("g h x message rzc w2 w u v d_rzc d_h d_m d_x sums", "g_row h_row rows width relu before")


class _Mean(Structure):
    _fields_ = native.fields(
        "size source target weight share part bias x y", "x_row words edges graphs width master back"
    )


class _Attention(Structure):
    _fields_ = native.fields("size h a b v y score alpha pooled", "h_row rows groups width bounded")


class _AttentionBack(Structure):
    _fields_ = native.fields("size g h a v y score alpha d_h d_y d_v", "g_row h_row rows groups width bounded")


class _Outer(Structure):
    _fields_ = native.fields("g x d_w d_b", "g_row x_row rows n_out n_in")


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
    native.library.mpad_outer.argtypes = [POINTER(_Outer), c_long, c_long]
    return native.library


def run_on(h: Tensor) -> bool:
    """Whether the compiled passes take these rows."""
    fine = h.device.type == "cpu" and h.ndim == 2 and h.dtype == torch.float32 and native.fits(h.shape[1])
    return fine and _library() is not None


def update_forward(
    h: Tensor, x: Tensor, hear: tuple[Tensor, Tensor, bool] | None, gate: tuple[Tensor, Tensor, Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What `nn.gate.update_forward` computes: H', M, (R, Z, C), R ⊙ H."""
    h, x = _by_rows(h), _by_rows(x)
    rows, width = h.shape
    bias, *maps = gate
    w2, b2, relu = hear or (None, None, False)
    w, u, v, w2 = (None if weight is None else _turned(weight) for weight in (*maps, w2))
    empty = _room.empty
    message = x if hear is None else empty(rows, width)
    rzc, reset_h, out = empty(rows, 3 * width), empty(rows, width), empty(rows, width)
    places = [_at(part) for part in (h, x, w2, b2, bias, w, u, v, message, rzc, reset_h, out)]
    of = _Update(*places, h.stride(0), x.stride(0), rows, width, relu)
    _library().mpad_update(of, torch.get_num_threads())
    return out, message, rzc, reset_h


def update_backward(
    g: Tensor,
    h: Tensor,
    x: Tensor,
    message: Tensor,
    rzc: Tensor,
    hear: tuple[Tensor, bool] | None,
    maps: tuple[Tensor, ...],
    before: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """Gradients of the pre-activations of R, Z, C; of H; of M before its ReLU; of X; of a bias before X."""
    g, h, x, threads = _by_rows(g), _by_rows(h), x.contiguous(), torch.get_num_threads()
    rows, width = h.shape
    w2, relu = hear or (None, False)
    empty = _room.empty
    d_rzc, d_h, d_m = empty(rows, 3 * width), empty(rows, width), empty(rows, width)
    d_x = d_m if hear is None else empty(rows, width)
    sums = h.new_zeros(threads, width)
    weights = [None if weight is None else weight.contiguous() for weight in (w2, *maps)]
    places = [_at(part) for part in (g, h, x, message, rzc, *weights, d_rzc, d_h, d_m, d_x, sums)]
    of = _UpdateBack(*places, g.stride(0), h.stride(0), rows, width, relu, before)
    _library().mpad_update_back(of, threads)
    return d_rzc, d_h, d_m, d_x, sums.sum(0) if before else None


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
    y, pooled = _room.empty(rows, width), _room.empty(len(sizes), width)
    score, alpha = torch.empty(rows), torch.empty(rows)
    arrays = sizes, words, _turned(w), bias, v.contiguous(), y, score, alpha, pooled
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
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of H, the rows behind its words included; of H W_A + b; and of v."""
    g, words, threads = _by_rows(g), _by_rows(words), torch.get_num_threads()
    rows, width = words.shape
    d_h, d_y, d_v = _room.empty(rows + len(behind), width), _room.empty(rows, width), torch.zeros(threads, width)
    d_h[rows:] = behind
    arrays = sizes, g, words, w.contiguous(), v.contiguous(), y, score, alpha, d_h, d_y, d_v
    shape = g.stride(0), words.stride(0), rows, len(sizes), width, bounded
    _library().mpad_attention_back(_AttentionBack(*[_at(part) for part in arrays], *shape), threads)
    return d_h, d_y, d_v.sum(0, keepdim=True)


def outer_products(pairs: list[tuple[Tensor, Tensor, bool]]) -> list[tuple[Tensor, Tensor | None]]:
    """Gᵀ X and, where asked for, the column sums of G, for several pairs at once: weights' and biases' gradients."""
    found, jobs, kept = [], (_Outer * len(pairs))(), []
    for job, (g, x, bias) in zip(jobs, pairs, strict=True):
        g, x = _by_rows(g), _by_rows(x)
        d_w, d_b = _room.empty(g.shape[1], x.shape[1]), _room.empty(g.shape[1]) if bias else None
        job.g, job.x, job.d_w, job.d_b = (_at(part) for part in (g, x, d_w, d_b))
        job.g_row, job.x_row, job.rows, job.n_out, job.n_in = g.stride(0), x.stride(0), len(g), g.shape[1], x.shape[1]
        found.append((d_w, d_b))
        kept.append((g, x))
    _library().mpad_outer(jobs, len(pairs), torch.get_num_threads())
    return found


def _turned(weight: Tensor) -> Tensor:
    """(out, in) → (in, out); in panels of 64 columns, where there are no others."""
    n_out, n_in = weight.shape
    if n_in % _PANEL:
        return weight.t().contiguous()
    return weight.view(n_out // _PANEL, _PANEL, n_in).transpose(1, 2).contiguous()


def _by_rows(x: Tensor) -> Tensor:
    return x if x.stride(1) == 1 else x.contiguous()


def _at(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()
