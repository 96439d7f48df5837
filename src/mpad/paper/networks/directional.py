"""Directional attention on each feature (Shen et al., AAAI 2018, eqs. 13 to 17)."""

import torch
from torch import Tensor


def directional_mask(n: int, forward: bool, device: torch.device | None = None) -> Tensor:
    """Return the mask (j, i) of positions: j attends to earlier ones forwards, to later ones backwards."""
    place = torch.arange(n, device=device)
    return place[:, None] > place[None] if forward else place[:, None] < place[None]


def masked_softmax(score: Tensor, real: Tensor, dim: int) -> Tensor:
    """Softmax over what is real; zeros where nothing is."""
    lowest = torch.finfo(score.dtype).min
    return torch.softmax(score.masked_fill(~real, lowest), dim) * real


def directional_attention(a: Tensor, b: Tensor, h: Tensor, real: Tensor, looks_back: bool, scale: float) -> Tensor:
    """s_j = Σ_i softmax_i(c · tanh((a_i + b_j) / c)) ⊙ h_i, over the places i before j, or behind it.

    a, b, h, s: (rows, places, width); real: (rows, places) bool; c = `scale`. A place with nowhere to look,
    or that is not real, has s = 0.
    """
    pair = a[:, None] + b[:, :, None]  # (rows, j, i, width)
    allowed = directional_mask(h.shape[1], looks_back, h.device) & real[:, None]
    weights = masked_softmax(scale * torch.tanh(pair / scale), allowed[..., None], dim=2)
    return torch.einsum("rjid,rid->rjd", weights, h) * real[..., None]
