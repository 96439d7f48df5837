"""Word vectors of a static batch, and dropout with the masks of `mpad.dropout`, drawn inside the kernels."""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad.dropout import ALL_BITS, SECOND, Dropout
from mpad.kernels.cuda.kernel import kernel, tile_of
from mpad.kernels.cuda.linear import linear

_ROWS = 8


class DropoutState(NamedTuple):
    """The state of the random generator for one mask; None without dropout."""

    seeds: Tensor | None  # (models,) int64
    steps: Tensor | None  # (models,) int64
    thresholds: Tensor | None  # (models,) int64: 256 times the rate
    layer: int

    @classmethod
    def of(cls, dropout: Dropout) -> "DropoutState":
        """Return the state for one call of a layer."""
        if not dropout.training or not dropout.p:
            return cls(None, None, None, dropout.layer)
        counter = dropout.next_counter()
        return cls(counter.seeds, counter.steps, dropout.threshold.view(-1), dropout.layer)

    def tensors(self, instead: Tensor) -> tuple[Tensor, ...]:
        """Return the tensors, or `instead` without dropout."""
        return tuple(instead if part is None else part for part in self[:3])

    @property
    def key(self) -> int:
        """The layer's part of the key."""
        return (self.layer * SECOND) & ALL_BITS


class WordRows(NamedTuple):
    """H⁰ of a static batch, which is computed where it is mapped."""

    table: Tensor  # ([models,] n_words, vector_width)
    words: Tensor  # (nodes of the corpus,) int32, row of each node
    node: Tensor  # (models, words) int32, node of the corpus; -1 for padding
    masters: int  # zero rows that follow, one per master node of a model
    dropout: DropoutState

    def dense(self) -> Tensor:
        """Return H⁰ itself: (models, words + masters, vector_width)."""
        rows: Tensor = _Embedding.apply(self.table, self)
        return rows

    def linear(self, *weights: Tensor) -> tuple[Tensor, ...]:
        """H⁰ Wᵀ for each weight, by one product: (models, words + masters, out) each."""
        mapped = linear(self.dense(), weights[0] if len(weights) == 1 else torch.cat(weights, dim=-2))
        parts: tuple[Tensor, ...] = mapped.split([weight.shape[-2] for weight in weights], dim=-1)
        return parts


@triton.jit
def _key(seeds, steps, model, LAYER: tl.constexpr):
    """Return the key of a model's mask: 64 bits."""
    seed = tl.load(seeds + model).to(tl.uint64) * 0x9E3779B97F4A7C15
    key = seed + tl.load(steps + model).to(tl.uint64) * 0xBF58476D1CE4E5B9 + LAYER
    return key ^ (key >> 29)


@triton.jit
def _kept(key, threshold, eights, N: tl.constexpr):
    """Return 1 / (1 − p) for an element that is kept, else 0: (N,), eight per counter, from the bytes of SplitMix64."""
    z = key + eights.to(tl.uint64) * 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    z = z ^ (z >> 31)
    place = (tl.arange(0, 8) * 8).to(tl.uint64)
    drawn = ((z[:, None] >> place[None, :]) & 255).to(tl.int32)
    return tl.reshape(tl.where(drawn >= threshold, 256.0 / (256 - threshold).to(tl.float32), 0.0), (N,))


@triton.jit
def _kept_rows(key, threshold, row, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """Return the same for rows of D elements, by row index: (ROWS, BLOCK)."""
    eights = row[:, None] * ((D + 7) // 8) + tl.arange(0, BLOCK // 8)[None, :]
    kept = _kept(key, threshold, tl.reshape(eights, (ROWS * BLOCK // 8,)), ROWS * BLOCK)
    return tl.reshape(kept, (ROWS, BLOCK))


@kernel()
def _embed(
    table, table_slab, words, node, out, seeds, steps, thresholds, n, rows, LAYER: tl.constexpr, DROPS: tl.constexpr,
    D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)[None, :]
    me = tl.load(node + model * n + row, row < n, -1)
    real = (me >= 0)[:, None] & (column < D)
    word = tl.load(words + me, me >= 0, 0).to(tl.int64)
    x = tl.load(table + model * table_slab + word[:, None] * D + column, real, 0.0)
    if DROPS:
        threshold = tl.load(thresholds + model).to(tl.int32)
        x *= _kept_rows(_key(seeds, steps, model, LAYER), threshold, word, D, BLOCK, ROWS)
    tl.store(out + (model * rows + row).to(tl.int64)[:, None] * D + column, x, (row < rows)[:, None] & (column < D))


@kernel()
def _embed_backward(
    g, d_table, table_slab, words, node, seeds, steps, thresholds, n, rows, LAYER: tl.constexpr, DROPS: tl.constexpr,
    D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)[None, :]
    me = tl.load(node + model * n + row, row < n, -1)
    real = (me >= 0)[:, None] & (column < D)
    word = tl.load(words + me, me >= 0, 0).to(tl.int64)
    d = tl.load(g + (model * rows + row).to(tl.int64)[:, None] * D + column, real, 0.0)
    if DROPS:
        threshold = tl.load(thresholds + model).to(tl.int32)
        d *= _kept_rows(_key(seeds, steps, model, LAYER), threshold, word, D, BLOCK, ROWS)
    tl.atomic_add(d_table + model * table_slab + word[:, None] * D + column, d, real, sem="relaxed")


@kernel()
def _dropout(x, out, seeds, steps, thresholds, n, LAYER: tl.constexpr, BLOCK: tl.constexpr):
    model, at = tl.program_id(1).to(tl.int64), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    threshold = tl.load(thresholds + model).to(tl.int32)
    value = tl.load(x + model * n + at, at < n, 0.0)
    eights = tl.program_id(0) * (BLOCK // 8) + tl.arange(0, BLOCK // 8)
    value *= _kept(_key(seeds, steps, model, LAYER), threshold, eights, BLOCK)
    tl.store(out + model * n + at, value, at < n)


class _Embedding(torch.autograd.Function):
    """H⁰: word vectors after dropout, then zero rows for the masters: (models, words + masters, vector_width)."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, words: WordRows) -> Tensor:
        state = words.dropout
        models, n = words.node.shape
        out = table.new_empty(models, n + words.masters, table.shape[-1])
        ctx.words, ctx.shape = words, table.shape
        _embed[_grid(out)](table, *_table(table, words), out, *state.tensors(words.node), n, *_size(out, state))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        if not ctx.needs_input_grad[0]:
            return None, None
        g, words, state = gradients[0].contiguous(), ctx.words, ctx.words.dropout
        d_table, n = g.new_zeros(ctx.shape), words.node.shape[1]
        _embed_backward[_grid(g)](g, d_table, *_table(d_table, words), *state.tensors(words.node), n, *_size(g, state))
        return d_table, None


def _grid(x: Tensor) -> tuple[int, int]:
    return triton.cdiv(x.shape[1], tile_of(x.shape[2], _ROWS)[2]), x.shape[0]


def _size(x: Tensor, state: DropoutState) -> tuple[Any, ...]:
    return x.shape[1], state.key, state.seeds is not None, *tile_of(x.shape[2], _ROWS)


def _table(table: Tensor, words: WordRows) -> tuple[int, Tensor, Tensor | None]:
    return table.stride(0) if table.ndim == 3 else 0, words.words, words.node


def dropout(x: Tensor, module: Dropout) -> Tensor:
    """Apply a layer's dropout to x; with several models, (models, ...)."""
    state = DropoutState.of(module)
    return x if state.seeds is None else _Dropout.apply(x, state)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, state: DropoutState) -> Tensor:
        ctx.state = state
        return _dropped(x, state)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _dropped(gradients[0], ctx.state), None


def _dropped(x: Tensor, state: DropoutState) -> Tensor:
    assert state.seeds is not None
    x, out = x.contiguous(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
    models = len(state.seeds)
    n = x.numel() // models
    _dropout[(triton.cdiv(n, 1024), models)](x, out, *state.tensors(x), n, state.key, 1024)
    return out
