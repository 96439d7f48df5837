"""READOUT, equations 7 and 8: the nodes of a graph → one vector, together with its attention."""

import torch
from torch import Tensor
from torch.nn import functional

from mpad.ops.batch_norm import batch_norm
from mpad.ops.dispatch import Changed, operator
from mpad.ops.graph import Segments
from mpad.ops.linear import linear
from mpad.ops.segments import segment_softmax, segment_sum

PER_ROUND = 5  # weights of each round's attention


@operator(cuda="mpad.ops.cuda.attention:attention")
def attention(
    h: Tensor, segments: Segments, align: Tensor, bias: Tensor | None, context: Tensor, bounded: bool
) -> tuple[Tensor, Tensor]:
    """Self-attention over the words of each graph (eq. 7): u (…, groups, width), α (words,).

    Y = tanh(H W_A [+ b])    α = softmax([tanh] (Y · v)) within the graph    u = Σ α_i H_i

    H: ([models,] words, width). A graph without words, or of padding, gets zeros. The returned α is detached; u
    is differentiated through it.
    """
    y = torch.tanh(linear(h, align, bias))
    score = linear(y, context).flatten()
    owner = segments.flat_owner()
    alpha = segment_softmax(torch.tanh(score) if bounded else score, owner, segments.n)
    if segments.mask is not None:
        alpha = alpha * segments.mask.flatten().index_select(0, owner)
    pooled = segment_sum(h.flatten(0, -2) * alpha[:, None], owner, segments.n)
    return pooled.view(*h.shape[:-2], segments.n // segments.models, h.shape[-1]), alpha.detach()


@operator(cpu="mpad.ops.cpu.readout:readout")
def readout(
    states: list[Tensor],
    segments: Segments,
    weights: list[Tensor | None],
    gamma: Tensor,
    beta: Tensor,
    dense: Tensor,
    dense_bias: Tensor,
    running: Changed,
    by_batch: bool,
    momentum: float,
    eps: float,
    skip: bool,
    bounded: bool,
) -> tuple[Tensor, Tensor]:
    """All that is read out of the states H¹ … H^T (eqs. 7 and 8): vectors (…, groups, width), α (T, words).

    skip:     h^t = CONCAT(u^t, H^t_master), attention over the words alone
    no skip:  h^t = u^t, attention over the words and the master alike
    h_G = CONCAT(h¹ … h^T)    vector = ReLU(BN(h_G) W + b)

    H^t: ([models,] words [+ groups], width), master rows last. `weights` holds, for each t, W_A, its bias, v, and
    weight and bias of a dense layer with ReLU on u; what a network does not have is None.
    """
    n_words = segments.owner.numel() // segments.models
    parts, alphas = [], []
    for t, h in enumerate(states):
        align, bias, context, after, after_bias = weights[PER_ROUND * t : PER_ROUND * (t + 1)]
        assert align is not None and context is not None
        if skip:
            words, masters = h.split((n_words, h.shape[-2] - n_words), dim=-2)
            pooled, alpha = attention(words, segments, align, bias, context, bounded)
        else:
            pooled, alpha = attention(h, _with_masters(h, segments, n_words), align, bias, context, bounded)
        parts.append(pooled if after is None else functional.relu(linear(pooled, after, after_bias)))
        if skip:
            parts.append(masters)
        alphas.append(alpha.view(segments.models, alpha.numel() // segments.models)[:, :n_words].flatten())
    joined = torch.cat(parts, dim=-1)
    normal = batch_norm(joined, None, gamma, beta, running, segments.mask, by_batch, momentum, eps, False)
    return functional.relu(linear(normal, dense, dense_bias)), torch.stack(alphas)


def _with_masters(h: Tensor, segments: Segments, n_words: int) -> Segments:
    """A master node without its skip connection is a node among the words of its graph."""
    if h.shape[-2] == n_words:
        return segments
    masters = torch.arange(segments.n, device=h.device).view(*h.shape[:-2], -1)
    owner = torch.cat([segments.flat_owner().view(*h.shape[:-2], n_words), masters], dim=-1)
    return segments._replace(owner=owner.flatten(), size=None, base=None)
