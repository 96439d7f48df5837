"""Word vectors and dropout in C: each distinct word of a batch is read, dropped and mapped once.

Half of the nodes in a batch of 128 short documents repeat a word, and nearly all in long ones.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from mpad.dropout import ALL_BITS, FIRST, GOLDEN, SECOND, Dropout
from mpad.graph.batch import GraphBatch
from mpad.kernels.cpu import by_rows, call, library, takes
from mpad.kernels.cpu.workspace import allocate, markers

_Mask = tuple[int, int]  # key and threshold; a threshold of 0 drops nothing


def _mask(dropout: Dropout) -> _Mask:
    """Return the key and threshold of the masks of this call."""
    if not dropout.training or not dropout.p:
        return 0, 0
    counter = dropout.next_counter()
    key = (int(counter.seeds) * GOLDEN + int(counter.steps) * FIRST + dropout.layer * SECOND) & ALL_BITS
    return key ^ (key >> 29), int(dropout.threshold)


@dataclass(frozen=True)
class WordRows:
    """H⁰, the word vectors of a batch after dropout and a zero row per master node, computed when it is mapped."""

    table: Tensor  # (n_words, vector_width)
    words: Tensor  # (words,) int64
    masters: int
    mask: _Mask

    @classmethod
    def of(cls, table: Tensor, batch: GraphBatch, master: bool, dropout: Dropout) -> "WordRows | None":
        """Return the rows of a batch, or None if C does not support this table."""
        if not takes(table):
            return None
        return cls(table, batch.words, batch.n_graphs if master else 0, _mask(dropout))

    def __len__(self) -> int:
        return len(self.words) + self.masters

    def linear(self, *weights: Tensor) -> tuple[Tensor, ...]:
        """Return H⁰ Wᵀ for one or two weights of the same height: (rows, out) each."""
        return _mapped(self.table, self.words, self.masters, weights, self.mask)

    def dense(self) -> Tensor:
        """Return H⁰ itself: (rows, vector_width)."""
        table = self.table.contiguous()
        unique, index = distinct(self.words, 0, len(table))
        rows = _Rows.apply(table, unique, *self.mask)  # type: ignore[no-untyped-call]
        return F.pad(rows[index], (0, 0, 0, self.masters))


def _mapped(table: Tensor, index: Tensor, masters: int, weights: tuple[Tensor, ...], mask: _Mask) -> tuple[Tensor, ...]:
    words, place = distinct(index, masters, table.shape[0])
    table = table.contiguous()
    if table.requires_grad:
        rows = _Rows.apply(table, words, *mask)  # type: ignore[no-untyped-call]
    else:
        rows = _dropped_rows(table, words, False, *mask)
    mapped: tuple[Tensor, ...] = _Mapped.apply(rows, place, *weights)  # type: ignore[no-untyped-call]
    return mapped


def distinct(words: Tensor, masters: int, n_words: int) -> tuple[Tensor, Tensor]:
    """Return the distinct words and the place of each row among them; the place of masters is after the last."""
    words = words.contiguous()
    unique, index = torch.empty_like(words), torch.empty(words.shape[0] + masters, dtype=torch.int64)
    arrays = [ctypes.c_void_p(array.data_ptr()) for array in (words, markers(n_words), unique, index)]
    numbers = [ctypes.c_long(n) for n in (words.shape[0], masters, n_words)]
    n = library().mpad_distinct(arrays[0], *numbers, *arrays[1:])
    if n < 0:
        raise IndexError(f"words are numbered 0 to {n_words - 1}, but these are {words.min()} to {words.max()}")
    return unique[:n], index


class _Rows(torch.autograd.Function):
    """Distinct rows of a table after dropout."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, words: Tensor, key: int, threshold: int) -> Tensor:
        ctx.save_for_backward(words)
        ctx.mask, ctx.shape = (key, threshold), table.shape
        return _dropped_rows(table, words, False, key, threshold)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (words,) = ctx.saved_tensors
        rows = _dropped_rows(gradients[0].contiguous(), words, True, *ctx.mask)
        return rows.new_zeros(ctx.shape).index_copy_(0, words, rows), None, None, None


def _dropped_rows(x: Tensor, words: Tensor, in_place: bool, key: int, threshold: int) -> Tensor:
    y = allocate(words.shape[0], x.shape[1])
    shape = {"n": words.shape[0], "width": x.shape[1], "in_place": in_place}
    call(
        "embed", "dropout", x=x, which=words, y=y, **shape, key=key, threshold=threshold, scale=256 / (256 - threshold)
    )
    return y


class _Mapped(torch.autograd.Function):
    """One or two linear maps of rows that repeat: distinct rows are mapped once, then gathered by `index`.

    Gradients of the same row are summed before they are multiplied by the weights.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        mapped = torch.mm(rows, weight.t(), out=allocate(rows.shape[0], weight.shape[0]))
        y = allocate(index.shape[0], weight.shape[0])
        call("gather", "gather", x=mapped, index=index, y=y, rows=len(index), n=len(rows), width=len(weight))
        ctx.save_for_backward(rows, index, weight)
        ctx.width = weights[0].shape[0]
        slices: tuple[Tensor, ...] = y.split(ctx.width, dim=1)
        return slices

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, index, weight = ctx.saved_tensors
        slices = [by_rows(gradient) for gradient in gradients]
        first, second = slices[0], slices[-1]
        d_mapped = allocate(rows.shape[0], len(slices) * ctx.width)
        shape = {"rows": len(index), "n": len(rows), "width": d_mapped.shape[1], "slice": ctx.width}
        steps = {"first_row": first.stride(0), "second_row": second.stride(0)}
        call("scatter", "scatter", first=first, second=second, index=index, y=d_mapped, **steps, **shape)
        d_rows = d_mapped @ weight if ctx.needs_input_grad[0] else None
        return d_rows, None, *(d_mapped.t() @ rows).split(ctx.width)


def drop(x: Tensor, dropout: Dropout) -> Tensor:
    """Apply dropout to x, of any shape."""
    return _Dropout.apply(x, *_mask(dropout))  # type: ignore[no-any-return, no-untyped-call]


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, key: int, threshold: int) -> Tensor:
        ctx.mask = key, threshold
        return _dropped(x, key, threshold)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return _dropped(gradients[0], *ctx.mask), None, None


def _dropped(x: Tensor, key: int, threshold: int) -> Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    scale = 256 / (256 - threshold)
    call("drop", "dropout", x=x, y=y, n=x.numel(), width=1, in_place=True, key=key, threshold=threshold, scale=scale)
    return y
