"""Word vectors of a batch, and dropout, with masks drawn by a counter: no state, the same alone or stacked."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from mpad.graph.planned import PlannedBatch
from mpad.nn.kernels.tiles import tile_of

_ROWS = 8


class DeviceNoise:
    """Seeds and steps of the models, on the GPU; `advance` is part of a captured step."""

    def __init__(self, seeds: Tensor, rates: Tensor) -> None:
        self.seeds, self.rates = seeds, rates  # (models,) int64, (models,) float32
        self.steps = torch.zeros_like(seeds)

    def advance(self, active: Tensor) -> None:
        """Draw afresh from now on, for the models that take the step."""
        self.steps += active


@triton.jit
def _scramble(x):
    """A 32-bit integer hash that spreads every bit: two multiplications, far cheaper than Philox."""
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _kept(seeds, steps, rates, model, place, offset):
    """1 / (1 − p) where an element stays, else 0."""
    seed = tl.load(seeds + model).to(tl.uint32) * 0x9E3779B9 + tl.load(steps + model).to(tl.uint32) * 8 + place
    bits = _scramble(_scramble(seed.to(tl.uint32)) ^ offset.to(tl.uint32)) >> 8  # 24 bits
    rate = tl.load(rates + model)
    return tl.where(bits.to(tl.float32) >= rate * 16777216.0, 1.0 / (1.0 - rate), 0.0)


@triton.jit
def _embed(
    table, table_slab, words, node, out, seeds, steps, rates, n, rows, TRAIN: tl.constexpr,
    D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)[None, :]
    me = tl.load(node + model * n + row, row < n, -1)
    real = (me >= 0)[:, None] & (column < D)
    word = tl.load(words + me, me >= 0, 0).to(tl.int64)
    x = tl.load(table + model * table_slab + word[:, None] * D + column, real, 0.0)
    if TRAIN:
        x *= _kept(seeds, steps, rates, model, 0, row[:, None] * D + column)
    tl.store(out + (model * rows + row).to(tl.int64)[:, None] * D + column, x, (row < rows)[:, None] & (column < D))


@triton.jit
def _embed_backward(
    g, d_table, table_slab, words, node, seeds, steps, rates, n, rows, TRAIN: tl.constexpr,
    D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    model, row = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)[None, :]
    me = tl.load(node + model * n + row, row < n, -1)
    real = (me >= 0)[:, None] & (column < D)
    word = tl.load(words + me, me >= 0, 0).to(tl.int64)
    d = tl.load(g + (model * rows + row).to(tl.int64)[:, None] * D + column, real, 0.0)
    if TRAIN:
        d *= _kept(seeds, steps, rates, model, 0, row[:, None] * D + column)
    tl.atomic_add(d_table + model * table_slab + word[:, None] * D + column, d, real, sem="relaxed")


@triton.jit
def _dropout(x, out, seeds, steps, rates, place, n, BLOCK: tl.constexpr):
    model, at = tl.program_id(1).to(tl.int64), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + model * n + at, at < n, 0.0) * _kept(seeds, steps, rates, model, place, at)
    tl.store(out + model * n + at, value, at < n)


class Embed(torch.autograd.Function):
    """H⁰ of a planned batch: word vectors, dropped out while training, then zero rows for the masters."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, batch: PlannedBatch, masters: int, noise: DeviceNoise | None) -> Tensor:
        """(models, words + masters, vector_width)."""
        models, n = batch.node.shape
        width = table.shape[-1]
        out = table.new_empty(models, n + masters, width)
        ctx.batch, ctx.noise, ctx.shape = batch, noise, table.shape
        _embed[_grid(out)](
            table,
            *_embedding(table, batch),
            out,
            *_drawn(noise, batch),
            n,
            n + masters,
            noise is not None,
            *_tile(width),
        )
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Add rows up by word."""
        if not ctx.needs_input_grad[0]:
            return None, None, None, None
        g, batch, noise = gradients[0].contiguous(), ctx.batch, ctx.noise
        d_table = g.new_zeros(ctx.shape)
        n, rows, width = batch.node.shape[1], *g.shape[1:]
        _embed_backward[_grid(g)](
            g, d_table, *_embedding(d_table, batch), *_drawn(noise, batch), n, rows, noise is not None, *_tile(width)
        )
        return d_table, None, None, None


def _grid(x: Tensor) -> tuple[int, int]:
    return triton.cdiv(x.shape[1], tile_of(x.shape[2], _ROWS)[2]), x.shape[0]


def _tile(width: int) -> tuple[int, int, int]:
    return tile_of(width, _ROWS)


def _embedding(table: Tensor, batch: PlannedBatch) -> tuple[int, Tensor, Tensor]:
    return table.stride(0) if table.ndim == 3 else 0, batch.corpus.words, batch.node


def _drawn(noise: DeviceNoise | None, batch: PlannedBatch) -> tuple[Tensor, Tensor, Tensor]:
    return (batch.node,) * 3 if noise is None else (noise.seeds, noise.steps, noise.rates)


class Drop(torch.autograd.Function):
    """y = x ⊙ mask / (1 − p): (models, rows, width) → the same."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, noise: DeviceNoise, place: int) -> Tensor:
        """Drop elements."""
        ctx.noise, ctx.place = noise, place
        return _drop(x, noise, place)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """The same mask again."""
        return _drop(gradients[0], ctx.noise, ctx.place), None, None


def _drop(x: Tensor, noise: DeviceNoise, place: int) -> Tensor:
    x, out = x.contiguous(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x[0].numel()
    _dropout[(triton.cdiv(n, 1024), x.shape[0])](x, out, noise.seeds, noise.steps, noise.rates, place, n, 1024)
    return out
