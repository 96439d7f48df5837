"""READOUT, equations 7 and 8: the nodes of a graph → one vector, together with its attention."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from mpad import native
from mpad.nn import compiled, kernels
from mpad.nn.compiled import attention as by_groups
from mpad.nn.compiled.readouts import Reading, Readouts
from mpad.nn.linear import Linear, add_product_, weight_and_bias_gradient, weight_gradient
from mpad.nn.norm import BatchNorm
from mpad.nn.segments import Groups, segment_softmax, segment_sum


class Attention(nn.Module):
    """Self-attention over the rows of each group (eq. 7).

    Y = tanh(H W_A)    α = softmax(Y · v) within the group    u = Σ α_i H_i

    H: (rows, width); α: (rows,); u: (groups, width). A group without rows gets zeros. The authors' code has a
    bias in W_A, a second tanh around Y · v, and a dense layer with ReLU on u: `authors=True`.
    """

    def __init__(self, width: int, authors: bool = False) -> None:
        super().__init__()
        self.align = Linear(width, width, bias=authors)
        self.context = Linear(width, 1, bias=False)
        self.dense = Linear(width, width) if authors else None

    def weights(self) -> list[Tensor | None]:
        """W_A, its bias, v, and the dense layer's, where there is one."""
        dense = [] if self.dense is None else [self.dense.weight, self.dense.bias]
        return [self.align.weight, self.align.bias, self.context.weight, *dense]

    def forward(self, h: Tensor, groups: Groups) -> tuple[Tensor, Tensor]:
        """H → u, α."""
        return self.beside(h, groups, h.shape[-2])[:2]

    def beside(self, h: Tensor, groups: Groups, n_words: int) -> tuple[Tensor, Tensor, Tensor]:
        """H → u, α over the first `n_words` of a model's rows, and the rows behind them."""
        weights = self.align.weight, self.align.bias, self.context.weight
        bounded = self.dense is not None
        pooled, alpha, behind = _Attend.apply(h, *weights, groups, n_words, bounded)  # type: ignore[no-untyped-call]
        return pooled if self.dense is None else self.dense.relu(pooled), alpha, behind


class _Attend(torch.autograd.Function):
    """H → u, α and the rows behind the words, with the derivative by hand, so that H's gradient is written once.

    α is for looking at: no gradient flows back through it.
    """

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, w: Tensor, bias: Tensor | None, v: Tensor, groups: Groups, n_words: int, bounded: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        words, behind = h.split((n_words, h.shape[-2] - n_words), dim=-2)
        if groups.runs is not None and kernels.run_on(h):
            from mpad.nn.kernels.attention import attend

            y, score, alpha, pooled = attend(words, w, bias, v, *groups.runs, bounded)
        elif groups.sizes is not None and compiled.run_on(h, (w, bias, v)):
            y, score, alpha, pooled = by_groups.attend(words, w, bias, v, groups.sizes, bounded)
        else:
            y = words @ w.mT
            y = (y if bias is None else y.add_(bias.unsqueeze(-2))).tanh_()
            score = (y @ v.mT).flatten()
            if bounded:
                score.tanh_()
            alpha = segment_softmax(score, groups.owner, groups.n)
            pooled = segment_sum((words * alpha.view(*words.shape[:-1], 1)).flatten(0, -2), groups.owner, groups.n)
            pooled = pooled if h.ndim == 2 else pooled.view(h.shape[0], -1, h.shape[-1])
        ctx.save_for_backward(h, w, y, v, score, alpha)
        ctx.has_bias, ctx.bounded, ctx.groups, ctx.n_words = bias is not None, bounded, groups, n_words
        alpha = alpha.flatten()
        ctx.mark_non_differentiable(alpha)
        return pooled, alpha, behind.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        h, w, y, v, score, alpha = ctx.saved_tensors
        g, _, g_behind = gradients
        words = h[..., : ctx.n_words, :]
        if ctx.groups.runs is not None and kernels.run_on(h):
            from mpad.nn.kernels.attention import attend_backward

            base, size = ctx.groups.runs
            d_h, d_y, d_v = attend_backward(g, g_behind, h, w, y, v, score, alpha, base, size, ctx.bounded)
        elif ctx.groups.sizes is not None and compiled.run_on(h, (w, v)):
            rest = y, v, score, alpha, ctx.groups.sizes, ctx.bounded
            d_h, of_w, of_bias, d_v = by_groups.attend_backward(g, g_behind, words, w, *rest)
            return d_h, of_w, of_bias if ctx.has_bias else None, d_v, None, None, None
        else:
            d_words, d_y, d_score = _attend_backward(g, words, y, v, score, alpha, ctx.groups, ctx.bounded)
            d_h = torch.cat([add_product_(d_words, d_y, w), g_behind], dim=-2)
            d_v = weight_gradient(d_score, y)
        d_w, d_bias = weight_and_bias_gradient(d_y, words, ctx.has_bias)
        return d_h, d_w, d_bias, d_v, None, None, None


def _attend_backward(
    g: Tensor, h: Tensor, y: Tensor, v: Tensor, score: Tensor, alpha: Tensor, groups: Groups, bounded: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of H (all but its way through y), of H W_A + b, and of the scores."""
    d_h = g.flatten(0, -2).index_select(0, groups.owner).view(h.shape)
    d_alpha = (d_h * h).sum(-1).flatten().mul_(alpha)
    d_score = d_alpha - alpha * segment_sum(d_alpha, groups.owner, groups.n).index_select(0, groups.owner)
    if bounded:
        d_score *= 1 - score * score
    d_score = d_score.view(*h.shape[:-1], 1)
    d_y = d_score * v
    torch.ops.aten.tanh_backward(d_y, y, grad_input=d_y)
    return d_h.mul_(alpha.view(d_score.shape)), d_y, d_score


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

    def forward(self, h: Tensor, groups: Groups, n_words: int) -> tuple[list[Tensor], Tensor]:
        """H → the parts of h_G, and the attention on each word: (words,). `n_words` of a model's rows are words."""
        if self.skip:
            pooled, alpha, masters = self.attention.beside(h, groups, n_words)
            return [pooled, masters], alpha
        if h.shape[-2] == n_words:
            pooled, alpha = self.attention(h, groups)
            return [pooled], alpha
        # A master node without its skip connection is a node among the others.
        models = h.shape[:-2]
        masters = torch.arange(groups.n, device=h.device).view(*models, -1)
        both = torch.cat([groups.owner.view(*models, n_words), masters], dim=-1)
        pooled, alpha = self.attention(h, Groups(both.flatten, groups.n))
        return [pooled], alpha.view(both.shape)[..., :n_words].flatten()


def read_whole(
    readouts: Sequence[Readout], norm: BatchNorm, dense: Linear, states: Sequence[Tensor], groups: Groups, n_words: int
) -> tuple[Tensor, Tensor] | None:
    """ReLU(BN(CONCAT(READOUT(H) of each round)) W + b) and the attention, in one call; None where passes do it."""
    h, first = states[0], readouts[0]
    rows = n_words + (groups.n if first.skip else 0)
    if not norm.training or groups.sizes is None or groups.n < 2 or any(h.shape[-2] != rows for h in states):
        return None
    weights = [weight for readout in readouts for weight in readout.attention.weights()]
    learnt = *weights, norm.weight, norm.bias, dense.weight, dense.bias
    assert norm.running_mean is not None and norm.running_var is not None
    authors, running = first.attention.dense is not None, (norm.running_mean, norm.running_var)
    if not compiled.run_on(h, (*states, *learnt, *running)) or not native.fits(dense.in_features):
        return None
    of = Reading(groups.sizes, n_words, len(states), first.skip, authors, running, norm.momentum or 0.0, norm.eps)
    found: tuple[Tensor, Tensor] = Readouts.apply(of, *states, *learnt)  # type: ignore[no-untyped-call]
    return found
