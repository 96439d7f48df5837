"""The paper's round of message passing: mean and ReLU in one kernel, the update in another."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad.kernels.cuda.aggregate import run
from mpad.kernels.cuda.gate import update_backward, update_forward
from mpad.kernels.cuda.graph import StaticWordGraph
from mpad.kernels.weights import UpdateWeights


def message_round(x: Tensor, h: Tensor, graph: StaticWordGraph, b1: Tensor, update: UpdateWeights) -> Tensor:
    """Return H' from X = H W₁ and H over graphs of words, without norms: (models, rows, width) each."""
    return _Round.apply(x, h, graph, b1, *update)  # type: ignore[no-any-return]


class _Round(torch.autograd.Function):
    """H W₁, H → H'. The update's kernel computes the backward of the mean's ReLU and bias."""

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
