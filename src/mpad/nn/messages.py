"""One round of messages, equations 4 to 6: nodes hear their neighbours and update themselves.

Linear maps and means commute, W (D⁻¹ A H) = D⁻¹ A (W H). So the first map of an MLP is applied to the rows before
they are averaged: where H holds word vectors, the mean runs over `width` columns instead of 300, and the map over
the distinct words of the batch instead of its nodes.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from mpad.nn.compiled.rounds import AuthorsRound, Round
from mpad.nn.gate import GatedUpdate, NeighboursOnly, update_backward, update_forward
from mpad.nn.linear import Linear
from mpad.nn.neighbours import Neighbours, in_c, mean
from mpad.nn.norm import BatchNorm
from mpad.nn.rows import RepeatedRows, StackedRows, project, project_both


class MessagePassing(nn.Module):
    """One step of the paper.

    M  = ReLU(ReLU(D⁻¹ A H W₁ + b₁) W₂ + b₂)     AGGREGATE, eq. 4, a two-layer MLP
    H' = GRU(H W₀, M)                            COMBINE, eq. 5 and 6

    H: (nodes, in_width); M, H': (nodes, width). W₀ is the identity, except at the first step: there H holds word
    vectors, of another width than the gate's, and W₀ is a learnt projection. (The paper is silent about it.)
    """

    def __init__(self, in_width: int, width: int, gated: bool, first: bool) -> None:
        super().__init__()
        self.width = width
        self.sent = Linear(in_width, width)
        self.heard = Linear(width, width)
        self.state = Linear(in_width, width, bias=False) if first and gated else None
        self.combine = GatedUpdate(width) if gated else NeighboursOnly()

    def forward(self, h: Tensor | RepeatedRows | StackedRows, neighbours: Neighbours) -> Tensor:
        """H → H'."""
        if self.state is not None:  # one product for both
            return self._heard(*project_both(h, self.sent.weight, self.state.weight), neighbours)
        square = isinstance(h, Tensor) and h.shape[-1] == self.sent.in_features == self.width
        if square and isinstance(h, Tensor) and isinstance(self.combine, GatedUpdate):
            weights = self.sent.weight, *self._weights(self.combine)
            graph = in_c(neighbours, h, weights)
            if graph is not None:
                updated: Tensor = Round.apply(h, None, graph, *weights)  # type: ignore[no-untyped-call]
                return updated
        return self._heard(project(h, self.sent.weight), h, neighbours)

    def _heard(self, sent: Tensor, state: Tensor | RepeatedRows | StackedRows, neighbours: Neighbours) -> Tensor:
        """H W₁, H W₀ → H'."""
        if isinstance(state, Tensor) and isinstance(self.combine, GatedUpdate):
            weights = self._weights(self.combine)
            graph = in_c(neighbours, state, weights)
            if graph is None:
                updated: Tensor = _Step.apply(sent, state, neighbours, *weights)  # type: ignore[no-untyped-call]
            else:
                updated = Round.apply(state, sent, graph, None, *weights)  # type: ignore[no-untyped-call]
            return updated
        inbox = functional.relu(mean(neighbours, sent) + self.sent.bias.unsqueeze(-2))
        return functional.relu(self.heard(inbox))

    def _weights(self, gate: GatedUpdate) -> tuple[Tensor, ...]:
        return self.sent.bias, self.heard.weight, self.heard.bias, *gate.weights()


class _Step(torch.autograd.Function):
    """H W₁, H W₀ → H': all of a step after its first map, with the derivative by hand."""

    @staticmethod
    def forward(
        ctx: Any, sent: Tensor, state: Tensor, neighbours: Neighbours, b1: Tensor, w2: Tensor, b2: Tensor, *gate: Tensor
    ) -> Tensor:
        inbox = neighbours.heard_relu(sent, b1)
        updated, kept = update_forward(state, inbox, (w2, b2, True), gate)  # type: ignore[arg-type]
        ctx.neighbours = neighbours
        ctx.save_for_backward(state, inbox, *kept, w2, b2, *gate)
        return updated

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        state, inbox, message, rzc, reset_h, w2, b2, *gate = ctx.saved_tensors
        kept, hear = (message, rzc, reset_h), (w2, b2, True)
        d = update_backward(gradients[0], state, inbox, kept, hear, tuple(gate), before=True)
        return ctx.neighbours.transposed(d.x), d.h, None, d.before, *d.hear, *d.gate


class AuthorsMessagePassing(nn.Module):
    """One step of the authors' published code, which has an MLP before the mean too, and batch norm inside.

    X  = ReLU(BN(H V₁ + c₁)) V₂ + c₂
    M  = ReLU(BN(D⁻¹ A X W₁ + b₁)) W₂ + b₂
    H' = GRU(X, M)

    H: (nodes, in_width); X, M, H': (nodes, width).
    """

    def __init__(self, in_width: int, width: int, gated: bool, first: bool) -> None:
        super().__init__()
        self.enter = Linear(in_width, width)
        self.enter_norm = BatchNorm(width)
        self.state = Linear(width, width)
        self.sent = Linear(width, width)
        self.sent_norm = BatchNorm(width)
        self.heard = Linear(width, width)
        self.combine = GatedUpdate(width) if gated else NeighboursOnly()

    def forward(self, h: Tensor | RepeatedRows | StackedRows, neighbours: Neighbours) -> Tensor:
        """H → H'."""
        maps_too = isinstance(h, Tensor) and h.shape[-1] == self.enter.in_features == self.enter.out_features
        entered = h if maps_too and isinstance(h, Tensor) else project(h, self.enter.weight)
        whole = self._whole(entered, neighbours, maps_too)
        if whole is not None:
            return whole
        if maps_too:
            entered = project(h, self.enter.weight)
        x = self.state(self.enter_norm(entered, neighbours.counted, relu=True, before=self.enter.bias))
        inbox = mean(neighbours, project(x, self.sent.weight))
        heard = self.sent_norm(inbox, neighbours.counted, relu=True, before=self.sent.bias)
        if isinstance(self.combine, GatedUpdate):
            return self.combine.hearing(x, heard, self.heard)
        return self.combine(x, self.heard(heard))

    def _whole(self, h: Tensor, neighbours: Neighbours, maps_too: bool) -> Tensor | None:
        """The same in one call: H → H', or where H is mapped already, H V₁ → H'. None where passes do it."""
        enter, send, gate = self.enter_norm, self.sent_norm, self.combine
        by_batch = enter.training and send.training and h.shape[-2] >= 2
        alike = (enter.momentum, enter.eps) == (send.momentum, send.eps)
        if not by_batch or not alike or enter.momentum is None or not isinstance(gate, GatedUpdate):
            return None
        maps = self.enter.weight if maps_too else None, self.state.weight, self.state.bias, self.sent.weight
        scales = enter.weight, enter.bias, send.weight, send.bias
        weights = *maps, self.heard.weight, self.heard.bias, *gate.weights(), *scales
        first = self.enter.bias.detach(), enter.running_mean, enter.running_var
        second = self.sent.bias.detach(), send.running_mean, send.running_var
        graph = in_c(neighbours, h, (*weights, *first, *second))
        if graph is None:
            return None
        of = first, second, enter.momentum, enter.eps
        updated: Tensor = AuthorsRound.apply(h, graph, of, *weights)  # type: ignore[no-untyped-call]
        return updated
