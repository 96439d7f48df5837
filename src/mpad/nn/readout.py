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
        h = h.to(torch.promote_types(h.dtype, torch.float32))
        aligned = torch.tanh(self.align(h)).to(h.dtype)
        pooled, alpha = _Pool.apply(h, aligned, self.context.weight[0], owner, n_groups, self.dense is not None)  # type: ignore[no-untyped-call]
        return pooled if self.dense is None else functional.relu(self.dense(pooled)), alpha


class _Pool(torch.autograd.Function):
    """H, Y, v → u, α: score, softmax and weighted sum in few passes, with the derivative by hand.

    α itself is for looking at: no gradient flows back through it.
    """

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, y: Tensor, v: Tensor, owner: Tensor, n_groups: int, bounded: bool
    ) -> tuple[Tensor, Tensor]:
        score = y.mv(v)
        if bounded:
            score.tanh_()
        alpha = segment_softmax(score, owner, n_groups)
        ctx.save_for_backward(h, y, v, owner, score, alpha)
        ctx.bounded, ctx.n_groups = bounded, n_groups
        ctx.mark_non_differentiable(alpha)
        return segment_sum(h * alpha[:, None], owner, n_groups), alpha

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        h, y, v, owner, score, alpha = ctx.saved_tensors
        d_h = gradients[0].index_select(0, owner)
        d_alpha = (d_h * h).sum(1).mul_(alpha)
        d_score = d_alpha - alpha * segment_sum(d_alpha, owner, ctx.n_groups).index_select(0, owner)
        if ctx.bounded:
            d_score *= 1 - score * score
        return d_h.mul_(alpha[:, None]), torch.outer(d_score, v), y.t().mv(d_score), None, None, None


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
