"""READOUT, equations 7 and 8: the nodes of a graph → one vector, together with its attention."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from mpad.nn.segments import segment_softmax, segment_sum


class Attention(nn.Module):
    """Self-attention over the rows of each group (eq. 7).

    Y = tanh(H W_A)    α = softmax(Y · v) within the group    u = Σ α_i H_i

    H: (rows, width); α: (rows,); u: (groups, width). A group without rows gets zeros. The authors' code has a
    bias in W_A, a second tanh around Y · v, and a dense layer with ReLU on u: `authors=True`.
    """

    def __init__(self, width: int, authors: bool = False) -> None:
        super().__init__()
        self.align = nn.Linear(width, width, bias=authors)
        self.context = nn.Linear(width, 1, bias=False)
        self.dense = nn.Linear(width, width) if authors else None

    def forward(self, h: Tensor, owner: Tensor, n_groups: int) -> tuple[Tensor, Tensor]:
        """H → u, α."""
        score = self.context(torch.tanh(self.align(h))).squeeze(1)
        score = score.to(torch.promote_types(score.dtype, torch.float32))
        if self.dense is not None:
            score = torch.tanh(score)
        alpha = segment_softmax(score, owner, n_groups)
        pooled: Tensor = _WeightedSum.apply(h.to(alpha.dtype), alpha, owner, n_groups)  # type: ignore[no-untyped-call]
        return pooled if self.dense is None else functional.relu(self.dense(pooled)), alpha


class _WeightedSum(torch.autograd.Function):
    """u_g = Σ α_i H_i over the rows i of group g, without keeping α_i H_i."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, alpha: Tensor, owner: Tensor, n_groups: int) -> Tensor:
        ctx.save_for_backward(h, alpha, owner)
        return segment_sum(h * alpha[:, None], owner, n_groups)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        h, alpha, owner = ctx.saved_tensors
        g = gradients[0].index_select(0, owner)
        d_alpha = torch.linalg.vecdot(g, h)
        return g.mul_(alpha[:, None]), d_alpha, None, None


class Readout(nn.Module):
    """One step's part of the document vector (eq. 7, "master node skip connection").

    skip:     h_G = CONCAT(u, H_master), attention over the words alone   (groups, 2 · width)
    no skip:  h_G = u, attention over the words and the master alike      (groups, width)

    H: (words [+ groups], width), the master rows last, one a group.
    """

    def __init__(self, width: int, skip: bool, authors: bool = False) -> None:
        super().__init__()
        self.skip = skip
        self.out_width = 2 * width if skip else width
        self.attention = Attention(width, authors)

    def forward(self, h: Tensor, owner: Tensor, n_groups: int) -> tuple[Tensor, Tensor]:
        """H → h_G, and the attention on each word: (words,)."""
        n_words = owner.shape[0]
        if self.skip:
            words, masters = h.split((n_words, n_groups))
            pooled, alpha = self.attention(words, owner, n_groups)
            return torch.cat([pooled, masters], dim=1), alpha
        if h.shape[0] > n_words:  # a master node without its skip connection is a node among the others
            owner = torch.cat([owner, torch.arange(n_groups, device=owner.device)])
        pooled, alpha = self.attention(h, owner, n_groups)
        return pooled, alpha[:n_words]
