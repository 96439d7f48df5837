"""Rows that repeat, and numbers that are dropped (nn/rows.py, nn/dropout.py)."""

import ctypes
from ctypes import Structure, c_float, c_long, c_ulong
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad import native
from mpad.nn.compiled import at, by_rows, call
from mpad.nn.compiled.memory import empty, places


class _Dropped(Structure):
    _fields_ = [
        *native.fields("x which y", "n width as_they_stand"),
        ("key", c_ulong),
        ("dropped", c_long),
        ("scale", c_float),
    ]


class _Gathered(Structure):
    _fields_ = native.fields("x index y", "rows n width")


class _Scattered(Structure):
    _fields_ = native.fields("first second index y", "first_row second_row rows n width slice")


def distinct(words: Tensor, masters: int, n_words: int) -> tuple[Tensor, Tensor]:
    """The distinct of some of `n_words` words, and a place among them for each; masters, which follow, stand behind."""
    words = words.contiguous()
    found, index = torch.empty_like(words), torch.empty(words.shape[0] + masters, dtype=torch.int64)
    of = [ctypes.c_void_p(array.data_ptr()) for array in (words, places(n_words), found, index)]
    numbers = c_long(words.shape[0]), c_long(masters), c_long(n_words)
    n = native.library.mpad_distinct(of[0], *numbers, *of[1:])  # type: ignore[union-attr]
    if n < 0:
        raise IndexError(f"words are numbered 0 to {n_words - 1}, but these are {words.min()} to {words.max()}")
    return found[:n], index


class Embed(torch.autograd.Function):
    """Distinct rows of a table, each number dropped where its random byte, by key and word, is below `dropped`."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, words: Tensor, key: int, dropped: int) -> Tensor:
        """Table, words → their rows ⊙ mask / (1 − p)."""
        ctx.save_for_backward(words)
        ctx.drawn, ctx.shape = (key, dropped), table.shape
        return _embed(table, words, False, key, dropped)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        """Of the table: zeros but for these rows."""
        (words,) = ctx.saved_tensors
        given = _embed(gradients[0].contiguous(), words, True, *ctx.drawn)
        return given.new_zeros(ctx.shape).index_copy_(0, words, given), None, None, None


def _embed(x: Tensor, words: Tensor, as_they_stand: bool, key: int, dropped: int) -> Tensor:
    n, width = words.shape[0], x.shape[1]
    y = empty(n, width)
    call("embed", _Dropped(*at((x, words, y)), n, width, as_they_stand, key, dropped, _scale(dropped)))
    return y


class Drop(torch.autograd.Function):
    """Numbers, each dropped where its random byte, which hangs on key and place, is below `dropped`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, key: int, dropped: int) -> Tensor:
        """X → X ⊙ mask / (1 − p)."""
        ctx.drawn = key, dropped
        return _drop(x, key, dropped)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """The same mask."""
        return _drop(gradients[0], *ctx.drawn), None, None


def _drop(x: Tensor, key: int, dropped: int) -> Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    call("drop", _Dropped(x.data_ptr(), None, y.data_ptr(), x.numel(), 1, True, key, dropped, _scale(dropped)))
    return y


def _scale(dropped: int) -> float:
    return 256 / (256 - dropped)


class Project(torch.autograd.Function):
    """Repeated rows → one or two linear maps of them, as many columns each: (rows, width), or (rows, 2 · width).

    Distinct rows are mapped once; gradients of the same row are added up before they meet the weights.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        """Distinct rows (n, in), index, weights (width, in) → a slice for each weight."""
        weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        mapped = torch.mm(rows, weight.t(), out=empty(rows.shape[0], weight.shape[0]))
        y = empty(index.shape[0], weight.shape[0])
        call("gather", _Gathered(*at((mapped, index, y)), index.shape[0], rows.shape[0], weight.shape[0]))
        ctx.save_for_backward(rows, index, weight)
        ctx.width = weights[0].shape[0]
        return y.split(ctx.width, dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Of each slice → of the rows, and of the weights."""
        rows, index, weight = ctx.saved_tensors
        slices = [by_rows(gradient) for gradient in gradients]
        first, second = slices[0], slices[-1]
        d_mapped = empty(rows.shape[0], len(slices) * ctx.width)
        shape = first.stride(0), second.stride(0), index.shape[0], rows.shape[0], d_mapped.shape[1], ctx.width
        call("scatter", _Scattered(*at((first, second, index, d_mapped)), *shape))
        d_rows = d_mapped @ weight if ctx.needs_input_grad[0] else None
        return d_rows, None, *(d_mapped.t() @ rows).split(ctx.width)
