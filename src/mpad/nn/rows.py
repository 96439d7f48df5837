"""Rows that repeat: the word vectors of a batch, each distinct word held once."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from mpad import native
from mpad.graph.planned import PlannedBatch
from mpad.nn import compiled
from mpad.nn.compiled.rows import Project, distinct
from mpad.nn.dropout import Dropout
from mpad.nn.linear import affine


@dataclass(frozen=True)
class RepeatedRows:
    """The matrix whose row i is distinct[index[i]], or zeros where index[i] = len(distinct).

    A linear map of it is computed once per distinct row: in a batch of 128 short documents about half of the
    nodes repeat a word, in long ones nearly all do.
    """

    distinct: Tensor  # (n_distinct, width)
    index: Tensor  # (n_rows,) int64


@dataclass(frozen=True)
class StackedRows:
    """The repeated rows of each of several models: (models, n_rows, width)."""

    models: list[RepeatedRows]


def distinct_rows(words: Tensor, masters: int, n_words: int) -> tuple[Tensor, Tensor]:
    """The distinct of some words below `n_words`, and a place among them for each; masters' is behind all."""
    if words.device.type == "cpu" and native.library is not None:
        return distinct(words, masters, n_words)
    found, index = torch.unique(words, return_inverse=True)
    return found, torch.cat([index, index.new_full((masters,), found.shape[0])]) if masters else index


def project_both(x: Tensor | RepeatedRows | StackedRows, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """`project` by two weights of one shape: one product for both."""
    if isinstance(x, RepeatedRows) and _compiled(x, first):
        both: tuple[Tensor, Tensor] = Project.apply(x.distinct, x.index, first, second)  # type: ignore[no-untyped-call]
        return both
    a, b = project(x, torch.cat([first, second], dim=-2)).split(first.shape[-2], dim=-1)
    return a, b


def project(x: Tensor | RepeatedRows | StackedRows, weight: Tensor) -> Tensor:
    """X Wᵀ: ([models,] rows, in_width), ([models,] out_width, in_width) → ([models,] rows, out_width)."""
    if isinstance(x, Tensor):
        return affine(x, weight)
    if isinstance(x, StackedRows):
        return torch.stack([project(rows, own) for rows, own in zip(x.models, weight.unbind(), strict=True)])
    if _compiled(x, weight):
        (rows,) = Project.apply(x.distinct, x.index, weight)  # type: ignore[no-untyped-call]
        return torch.as_tensor(rows)
    mapped = functional.linear(x.distinct, weight)
    return functional.pad(mapped, (0, 0, 0, 1)).index_select(0, x.index)


def _compiled(x: RepeatedRows, weight: Tensor) -> bool:
    return compiled.takes(x.distinct) and native.fits(weight.shape[0])


def embed_planned(table: Tensor, batch: PlannedBatch, masters: int, dropout: Dropout) -> Tensor:
    """The word vectors of a planned batch, dropped out, then a zero row for each master: (models, rows, width)."""
    from mpad.nn.kernels.noise import DeviceNoise, Embed

    noise = dropout.noise if dropout.training and isinstance(dropout.noise, DeviceNoise) else None
    return Embed.apply(table, batch, masters, noise)  # type: ignore[no-untyped-call]
