"""Attention over the places of padded rows."""

import torch
from torch import Tensor, nn

from mpad.paper.networks.directional import masked_softmax


class RowAttention(nn.Module):
    """One vector for each row of states, with its attention (Yang et al. 2016, eqs. 5 to 7).

    u_t = tanh(h_t W + b)    α = softmax_t(u_t · v)    s = Σ α_t h_t

    h: (rows, longest, width), real: (rows, longest) → s: (rows, width), α: (rows, longest). A row without states
    gets zeros.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.align = nn.Linear(width, hidden)
        self.context = nn.Linear(hidden, 1, bias=False)

    def forward(self, h: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """States → s, α."""
        score = self.context(torch.tanh(self.align(h))).squeeze(-1)
        alpha = masked_softmax(score, real, dim=-1)
        return (alpha.unsqueeze(-1) * h).sum(-2), alpha
