"""Sums and softmax per group of rows: the only index arithmetic of the networks.

`owner` (n_rows,) int64 says to which group each row belongs; groups without rows are ordinary and give zeros.
"""

import torch
from torch import Tensor


def segment_sum(x: Tensor, owner: Tensor, n_groups: int) -> Tensor:
    """Σ of the rows of each group: (n_rows, width) → (n_groups, width)."""
    return x.new_zeros((n_groups, *x.shape[1:])).index_add(0, owner, x)


def segment_softmax(score: Tensor, owner: Tensor, n_groups: int) -> Tensor:
    """exp(score) / Σ exp(score) within each group: (n_rows,) → (n_rows,)."""
    with torch.no_grad():  # a constant per group leaves the softmax as it is, and keeps exp in range
        highest = score.new_full((n_groups,), -torch.inf).scatter_reduce(0, owner, score, "amax")
    exponential = torch.exp(score - highest.index_select(0, owner))
    return exponential / segment_sum(exponential, owner, n_groups).index_select(0, owner)
