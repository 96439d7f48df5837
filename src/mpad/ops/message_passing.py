"""One round of messages, equations 4 to 6: AGGREGATE, then COMBINE.

Linear maps and means commute, W (D⁻¹ A H) = D⁻¹ A (W H). So the first map of an MLP is applied to the rows before they
are averaged: where H holds word vectors, the mean runs over `width` columns instead of 300.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from mpad.ops.batch_norm import batch_norm
from mpad.ops.dispatch import Changed, operator, structure
from mpad.ops.graph import Graph, SentenceGraph, StaticWordGraph
from mpad.ops.linear import linear
from mpad.ops.segments import segment_sum


@operator(cuda="mpad.ops.cuda.aggregate:aggregate")
def aggregate(x: Tensor, graph: Graph) -> Tensor:
    """D⁻¹ A x of equation 4, without ever forming D or A: ([models,] rows, width) → the same.

    graph of words   word v    (Σ w(u→v) · x_u + x_master) / (Σ w(u→v) + 1)
                     master    (Σ x_v over the words of its graph) / (number of words)
    clique           sentence  (Σ x over the sentences of its document − its own) / (sentences − 1)
    path             sentence  x of the sentence before it

    Without a master its terms vanish; without renormalisation the denominators do. A row that nobody sends to gets
    zeros. Stacked models' rows are words first, masters last, in each model.
    """
    if isinstance(graph, SentenceGraph):
        return _among_sentences(x, graph)
    if isinstance(graph, StaticWordGraph):
        graph = graph.edges()
    n = graph.owner.shape[0] // graph.models
    rows = n + (graph.size.shape[0] // graph.models if graph.master else 0)
    if x.shape[-2] != rows:
        raise ValueError(f"these graphs have {rows} rows (words, then master nodes), but x has {x.shape[-2]}")
    words, masters = x[..., :n, :].flatten(0, -2), x[..., n:, :].flatten(0, -2)
    sent = words.index_select(0, graph.source) * graph.weight[:, None]
    received = torch.zeros_like(words).index_add(0, graph.target, sent)
    if not graph.master:
        return received.view(x.shape)
    received = received + masters.index_select(0, graph.owner) * graph.share[:, None]
    of_words = segment_sum(words, graph.owner, graph.size.shape[0]) * graph.part[:, None]
    shape, width = x.shape[:-2], x.shape[-1]
    return torch.cat([received.view(*shape, n, width), of_words.view(*shape, rows - n, width)], dim=-2)


def _among_sentences(x: Tensor, graph: SentenceGraph) -> Tensor:
    rows, owner = x.flatten(0, -2), graph.owner
    if rows.shape[0] != owner.shape[0]:
        raise ValueError(f"these documents have {owner.shape[0]} sentences, but x has {rows.shape[0]} rows")
    if graph.path:
        follows = torch.cat([owner[:1] < 0, owner[1:] == owner[:-1]])  # the first follows nobody
        return (rows.roll(1, 0) * follows[:, None]).view(x.shape)
    others = segment_sum(rows, owner, graph.sizes.shape[0]).index_select(0, owner) - rows
    if graph.renormalise:
        others = others / (graph.sizes - 1).clamp(min=1).index_select(0, owner)[:, None]
    return others.view(x.shape)


@structure
class UpdateWeights(NamedTuple):
    """Weights of a gated update, and of the map that ends the message's MLP; weights are (out, in)."""

    w2: Tensor | None  # None: X is the message
    b2: Tensor | None
    bias: Tensor  # (3 · width,): of R, Z and C
    w: Tensor  # (3 · width, width): W_R, W_Z, W
    u: Tensor  # (2 · width, width): U_R, U_Z
    v: Tensor  # (width, width): U


@operator(cuda="mpad.ops.cuda.gate:gated_update")
def gated_update(h: Tensor, x: Tensor, weights: UpdateWeights, relu: bool) -> Tensor:
    """COMBINE, equations 5 and 6: the paper's gated recurrent unit, which resets BEFORE the linear map.

    M  = X W₂ + b₂, or the ReLU of that
    R  = σ(W_R M + U_R H + b_R)        Z = σ(W_Z M + U_Z H + b_Z)
    C  = tanh(W M + U (R ⊙ H) + b)
    H' = (1 − Z) ⊙ H + Z ⊙ C

    H, X, H': ([models,] rows, width). `nn.GRUCell` resets after the map, R ⊙ (U H): another function.
    """
    m = x
    if weights.w2 is not None:
        m = linear(x, weights.w2, weights.b2)
        m = functional.relu(m) if relu else m
    from_message = linear(m, weights.w, weights.bias)
    width = h.shape[-1]
    gates = torch.sigmoid(from_message[..., : 2 * width] + linear(h, weights.u))
    reset, update = gates.chunk(2, dim=-1)
    candidate = torch.tanh(from_message[..., 2 * width :] + linear(reset * h, weights.v))
    return torch.lerp(h, candidate, update)


@structure
class RoundWeights(NamedTuple):
    """Weights of a round of messages, (out, in) each; what a network does not have is None."""

    before1: Tensor | None  # an MLP before the mean: V₁, c₁, γ, β, V₂, c₂
    before1_bias: Tensor | None
    before_gamma: Tensor | None
    before_beta: Tensor | None
    before2: Tensor | None
    before2_bias: Tensor | None
    w1: Tensor  # the message's MLP: W₁, b₁, γ, β, W₂, b₂
    b1: Tensor
    gamma: Tensor | None
    beta: Tensor | None
    w2: Tensor
    b2: Tensor
    bias: Tensor | None  # the gate, as in UpdateWeights; None: the state becomes the message
    w: Tensor | None
    u: Tensor | None
    v: Tensor | None


@operator(cpu="mpad.ops.cpu.message_passing:message_round", cuda="mpad.ops.cuda.message_round:message_round")
def message_round(
    h: Tensor | None,
    x: Tensor | None,
    graph: Graph,
    weights: RoundWeights,
    running: Changed,
    by_batch: bool,
    momentum: float,
    eps: float,
    relu: bool,
) -> Tensor:
    """A round of messages, H → H'; what stands in [brackets] not every network has.

    [X  = ReLU([BN](H V₁ + c₁)) V₂ + c₂, and X in the place of H from here on]
     M  = [ReLU](ReLU([BN](D⁻¹ A H W₁ + b₁)) W₂ + b₂)        AGGREGATE, eq. 4
     H' = GRU(H, M)                                           COMBINE, eqs. 5 and 6; [or H' = M]

    H: ([models,] rows, in_width); X, M, H': ([models,] rows, width). Given `x`, the round's first map has been applied
    already: x = H V₁ or, without an MLP before the mean, x = H W₁. `running`: mean and variance of each batch norm.
    """
    options = graph.mask, by_batch, momentum, eps, True
    if weights.before2 is not None:
        assert weights.before1 is not None and weights.before1_bias is not None
        x = linear(_rows(h), weights.before1) if x is None else x
        x = _bias_norm_relu(x, weights.before1_bias, weights.before_gamma, weights.before_beta, running[:2], *options)
        h, x = linear(x, weights.before2, weights.before2_bias), None
    h = _rows(h)
    x = linear(h, weights.w1) if x is None else x
    inbox = _bias_norm_relu(aggregate(x, graph), weights.b1, weights.gamma, weights.beta, running[-2:], *options)
    if weights.bias is None or weights.w is None or weights.u is None or weights.v is None:
        m = linear(inbox, weights.w2, weights.b2)
        return functional.relu(m) if relu else m
    gate = weights.bias, weights.w, weights.u, weights.v
    return gated_update(h, inbox, UpdateWeights(weights.w2, weights.b2, *gate), relu)


def _bias_norm_relu(
    x: Tensor,
    bias: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    running: list[Tensor],
    mask: Tensor | None,
    by_batch: bool,
    momentum: float,
    eps: float,
    relu: bool,
) -> Tensor:
    if gamma is None or beta is None:
        return functional.relu(x + bias.unsqueeze(-2))
    return batch_norm(x, bias, gamma, beta, running, mask, by_batch, momentum, eps, relu)


def _rows(h: Tensor | None) -> Tensor:
    assert h is not None, "rows are needed where their first map is not given"
    return h
