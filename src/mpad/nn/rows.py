"""Rows that repeat: the word vectors of a batch, each distinct word held once."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class RepeatedRows:
    """The matrix whose row i is distinct[index[i]], or zeros where index[i] = len(distinct).

    A linear map of it is computed once per distinct row: in a batch of 128 short documents about half of the
    nodes repeat a word, in long ones nearly all do.
    """

    distinct: Tensor  # (n_distinct, width)
    index: Tensor  # (n_rows,) int64


def project(x: Tensor | RepeatedRows, weight: Tensor) -> Tensor:
    """X Wᵀ: (rows, in_width), (out_width, in_width) → (rows, out_width)."""
    if isinstance(x, Tensor):
        return functional.linear(x, weight)
    mapped = functional.linear(x.distinct, weight)
    return functional.pad(mapped, (0, 0, 0, 1)).index_select(0, x.index)
