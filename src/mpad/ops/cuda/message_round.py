"""A round of messages as the paper has it: a mean with its ReLU in one kernel, the update in another."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad.ops.cuda import takes
from mpad.ops.cuda.aggregate import run
from mpad.ops.cuda.gate import update_backward, update_forward
from mpad.ops.graph import Graph, StaticWordGraph
from mpad.ops.linear import linear
from mpad.ops.message_passing import RoundWeights, UpdateWeights


def message_round(
    h: Tensor | None,
    x: Tensor | None,
    graph: Graph,
    weights: RoundWeights,
    running: list[Tensor],
    by_batch: bool,
    momentum: float,
    eps: float,
    relu: bool,
) -> Any:
    """Rounds over graphs of words without norms; others are put together of smaller operators."""
    plain = weights.before2 is None and weights.gamma is None and weights.bias is not None and relu
    if h is None or not isinstance(graph, StaticWordGraph) or not plain or not takes(h, x, *weights):
        return NotImplemented
    x = linear(h, weights.w1) if x is None else x
    update = weights.w2, weights.b2, weights.bias, weights.w, weights.u, weights.v
    return _Round.apply(x, h, graph, weights.b1, *update)


class _Round(torch.autograd.Function):
    """H W₁, H → H'. The derivative of the mean's ReLU and bias is taken in the update's kernel."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, h: Tensor, graph: StaticWordGraph, b1: Tensor, *update: Tensor) -> Tensor:
        h = h if h.stride(-1) == 1 else h.contiguous()
        inbox = run(x, graph, b1)
        updated, saved = update_forward(h, inbox, UpdateWeights(*update), relu=True)
        ctx.graph = graph
        ctx.save_for_backward(h, inbox, *saved, *update)
        return updated

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        h, inbox, message, rzc, reset_h, *update = ctx.saved_tensors
        saved = message, rzc, reset_h
        d_h, d_inbox, d_update, d_b1 = update_backward(
            gradients[0], h, inbox, saved, UpdateWeights(*update), relu=True, before=True
        )
        return run(d_inbox, ctx.graph, transposed=True), d_h, None, d_b1, *d_update
