"""Word vectors and dropout (ops/embedding.py) in C: each distinct word of a batch is read, dropped and mapped once.

In a batch of 128 short documents about half of the nodes repeat a word, in long ones nearly all do.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad.kernels import native
from mpad.ops.cpu import by_rows, call, library, takes
from mpad.ops.cpu.workspace import allocate, markers
from mpad.ops.embedding import _64_BITS, FIRST, GOLDEN, SECOND, DropoutState, Words

_Mask = tuple[int, int]  # key and threshold of a model's mask; a threshold of 0 drops nothing


def _masks(state: DropoutState, models: int) -> list[_Mask]:
    if state.seeds is None or state.steps is None or state.thresholds is None:
        return [(0, 0)] * models
    masks = []
    for seed, step, threshold in zip(
        state.seeds.tolist(), state.steps.tolist(), state.thresholds.tolist(), strict=True
    ):
        key = (seed * GOLDEN + step * FIRST + state.layer * SECOND) & _64_BITS
        masks.append((key ^ (key >> 29), threshold))
    return masks


def embedding_linear(table: Tensor, words: Words, weights: list[Tensor], state: DropoutState) -> Any:
    """Linear maps of the vectors of words; of stacked models one after another."""
    widths = {weight.shape[-2] for weight in weights}
    if (
        words.node is not None
        or not takes(table, *weights)
        or len(weights) > 2
        or len(widths) > 1
        or not native.fits(*widths)
    ):
        return NotImplemented
    index = words.words
    if index.ndim == 1:
        return list(_mapped(table, index, words.masters, weights, _masks(state, 1)[0]))
    parts = []
    for model, mask in enumerate(_masks(state, len(index))):
        own = table if table.ndim == 2 else table[model]
        parts.append(_mapped(own, index[model], words.masters, [weight[model] for weight in weights], mask, True))
    return [torch.stack(part) for part in zip(*parts, strict=True)]


def _mapped(
    table: Tensor, index: Tensor, masters: int, weights: list[Tensor], mask: _Mask, padded: bool = False
) -> tuple[Tensor, ...]:
    words, place = distinct(index.clamp(min=0) if padded else index, masters, table.shape[0])
    if padded:
        place[: len(index)][index < 0] = len(words)  # behind all: zeros
    table = table.contiguous()
    if table.requires_grad:
        rows = _Rows.apply(table, words, *mask)  # type: ignore[no-untyped-call]
    else:
        rows = _dropped_rows(table, words, False, *mask)
    mapped: tuple[Tensor, ...] = _Mapped.apply(rows, place, *weights)  # type: ignore[no-untyped-call]
    return mapped


def distinct(words: Tensor, masters: int, n_words: int) -> tuple[Tensor, Tensor]:
    """The distinct of some of `n_words` words, and a place among them for each; that of masters is behind all."""
    words = words.contiguous()
    unique, index = torch.empty_like(words), torch.empty(words.shape[0] + masters, dtype=torch.int64)
    arrays = [ctypes.c_void_p(array.data_ptr()) for array in (words, markers(n_words), unique, index)]
    numbers = [ctypes.c_long(n) for n in (words.shape[0], masters, n_words)]
    n = library().mpad_distinct(arrays[0], *numbers, *arrays[1:])
    if n < 0:
        raise IndexError(f"words are numbered 0 to {n_words - 1}, but these are {words.min()} to {words.max()}")
    return unique[:n], index


class _Rows(torch.autograd.Function):
    """Distinct rows of a table, dropped: an element goes where its random byte, by key and word, is too low."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, words: Tensor, key: int, threshold: int) -> Tensor:
        ctx.save_for_backward(words)
        ctx.mask, ctx.shape = (key, threshold), table.shape
        return _dropped_rows(table, words, False, key, threshold)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (words,) = ctx.saved_tensors
        given = _dropped_rows(gradients[0].contiguous(), words, True, *ctx.mask)
        return given.new_zeros(ctx.shape).index_copy_(0, words, given), None, None, None


def _dropped_rows(x: Tensor, words: Tensor, as_they_stand: bool, key: int, threshold: int) -> Tensor:
    y = allocate(words.shape[0], x.shape[1])
    shape = {"n": words.shape[0], "width": x.shape[1], "as_they_stand": as_they_stand}
    call("embed", "dropped", x=x, which=words, y=y, **shape, key=key, dropped=threshold, scale=256 / (256 - threshold))
    return y


class _Mapped(torch.autograd.Function):
    """Distinct rows, and a place among them for each row → a linear map of every row for each of one or two weights.

    Distinct rows are mapped once; gradients of the same row are added up before they meet the weights.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        mapped = torch.mm(rows, weight.t(), out=allocate(rows.shape[0], weight.shape[0]))
        y = allocate(index.shape[0], weight.shape[0])
        call("gather", "gathered", x=mapped, index=index, y=y, rows=len(index), n=len(rows), width=len(weight))
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
        call("scatter", "scattered", first=first, second=second, index=index, y=d_mapped, **steps, **shape)
        d_rows = d_mapped @ weight if ctx.needs_input_grad[0] else None
        return d_rows, None, *(d_mapped.t() @ rows).split(ctx.width)


def dropout(x: Tensor, state: DropoutState) -> Any:
    """Elements of each model, dropped."""
    if state.seeds is None:
        return x
    if not takes(x):
        return NotImplemented
    return _Dropout.apply(x, _masks(state, len(state.seeds)))  # type: ignore[no-untyped-call]


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, masks: list[_Mask]) -> Tensor:
        ctx.masks = masks
        return _dropped(x, masks)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _dropped(gradients[0], ctx.masks), None


def _dropped(x: Tensor, masks: list[_Mask]) -> Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel() // len(masks)
    for own, to, (key, threshold) in zip(x.view(len(masks), n), y.view(len(masks), n), masks, strict=True):
        scale = 256 / (256 - threshold)
        call("drop", "dropped", x=own, y=to, n=n, width=1, as_they_stand=True, key=key, dropped=threshold, scale=scale)
    return y
