"""Word vectors of a batch, and dropout whose masks are a function of a counter.

A mask is a function of the model's seed, the step, the layer and the element alone: it does not depend on the device,
on padding, or on which other models train at the same time. One 64-bit hash serves eight elements, so rates are
multiples of 1/256.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from mpad.ops.dispatch import operator, structure
from mpad.ops.linear import linear

GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # SplitMix64's
_64_BITS = (1 << 64) - 1


@structure
class DropoutState(NamedTuple):
    """What masks are made of. Without seeds nothing is dropped."""

    seeds: Tensor | None  # (models,) int64
    steps: Tensor | None  # (models,) int64
    thresholds: Tensor | None  # (models,) int64: 256 times the rate
    layer: int  # tells the layers of a network apart


NO_DROPOUT = DropoutState(None, None, None, 0)


@structure
class Words(NamedTuple):
    """The words of a batch, by their rows in a table of vectors; -1 for padding."""

    words: Tensor  # (n,) int64, or (models, n); with `node`, of a whole corpus, int32
    node: Tensor | None  # (models, n) int32, of a static batch: which of them; -1 for padding
    masters: int  # zero rows that follow, one for each master node of a model


@operator(cpu="mpad.ops.cpu.embedding:embedding_linear", cuda="mpad.ops.cuda.embedding:embedding_linear")
def embedding_linear(table: Tensor, words: Words, weights: list[Tensor], state: DropoutState) -> list[Tensor]:
    """Linear maps of the rows H⁰, without their biases: one ([models,] words + masters, out) for each weight.

    H⁰ = the vectors of the words, dropped out, then a zero row for each master node.

    Dropout is drawn by word: within a batch, all nodes of one word share one mask.
    """
    index = words.words
    if words.node is not None:
        index = torch.where(words.node >= 0, index[words.node.clamp(min=0).long()], -1)
    padded = index.ndim == 2
    row = index.clamp(min=0).long() if padded else index
    if table.ndim == 3:
        row = row + torch.arange(len(table), device=table.device)[:, None] * table.shape[1]
    x = functional.embedding(row, table.flatten(0, -2)).to(weights[0].dtype)  # a table may be of half precision
    if padded:
        x = x * (index >= 0)[..., None]
    if state.seeds is not None:
        x = x * _mask(state, row % table.shape[-2], table.shape[-1]).to(x.dtype)
    x = functional.pad(x, (0, 0, 0, words.masters))
    return [linear(x, weight) for weight in weights]


@operator(cpu="mpad.ops.cpu.embedding:dropout", cuda="mpad.ops.cuda.embedding:dropout")
def dropout(x: Tensor, state: DropoutState) -> Tensor:
    """Y = x ⊙ mask / (1 − p), the mask 0 with probability p; any shape, the models first if there are several."""
    if state.seeds is None:
        return x
    models = state.seeds.shape[0]
    n = x.numel() // models
    eights = torch.arange(-(-n // 8), device=x.device).expand(models, -1)
    return x * _mask(state, eights, 8).view(models, -1)[:, :n].view(x.shape).to(x.dtype)


def _mask(state: DropoutState, row: Tensor, width: int) -> Tensor:
    """1 / (1 − p) where an element stays, else 0, of rows by their number: ([models,] n) → ([models,] n, width)."""
    assert state.seeds is not None and state.steps is not None and state.thresholds is not None
    key = state.seeds * _signed(GOLDEN) + state.steps * _signed(FIRST) + _signed(state.layer * SECOND)
    key = key ^ _shifted(key, 29)
    shape = (-1,) + (1,) * row.ndim if row.ndim > 1 else (1, 1)
    eights = -(-width // 8)
    z = key.view(shape) + (row[..., None] * eights + torch.arange(eights, device=row.device)) * _signed(GOLDEN)
    z = (z ^ _shifted(z, 30)) * _signed(FIRST)
    z = (z ^ _shifted(z, 27)) * _signed(SECOND)
    z = z ^ _shifted(z, 31)
    drawn = (z[..., None] >> torch.arange(0, 64, 8, device=row.device)) & 255  # (…, n, eights, 8)
    threshold = state.thresholds.view(shape)
    kept = drawn.flatten(-2)[..., :width] >= threshold
    return kept * (256.0 / (256 - threshold))


def _signed(x: int) -> int:
    """The int64 of the same bits as the lowest 64 of a number."""
    x &= _64_BITS
    return x - (1 << 64) if x >> 63 else x


def _shifted(x: Tensor, n: int) -> Tensor:
    """X >> n of unsigned numbers."""
    return (x >> n) & ((1 << (64 - n)) - 1)
