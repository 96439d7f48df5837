"""One round of messages, equations 4 to 6: nodes hear their neighbours and update themselves.

Linear maps and means commute, W (D⁻¹ A H) = D⁻¹ A (W H). So the first map of an MLP is applied to the rows before
they are averaged: where H holds word vectors, the mean runs over `width` columns instead of 300, and the map over
the distinct words of the batch instead of its nodes.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from mpad.nn.gate import GatedUpdate, NeighboursOnly
from mpad.nn.neighbours import Neighbours
from mpad.nn.norm import BatchNorm
from mpad.nn.rows import RepeatedRows, project


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
        self.sent = nn.Linear(in_width, width)
        self.heard = nn.Linear(width, width)
        self.state = nn.Linear(in_width, width, bias=False) if first and gated else None
        self.combine = GatedUpdate(width) if gated else NeighboursOnly()

    def forward(self, h: Tensor | RepeatedRows, neighbours: Neighbours) -> Tensor:
        """H → H'."""
        if self.state is None:
            sent, state = project(h, self.sent.weight), h
        else:  # one product for both
            both = project(h, torch.cat([self.sent.weight, self.state.weight]))
            sent, state = both[:, : self.width], both[:, self.width :]
        inbox = functional.relu(neighbours.mean(sent).add_(self.sent.bias), inplace=True)
        message = functional.relu(project(inbox, self.heard.weight).add_(self.heard.bias), inplace=True)
        return self.combine(state, message)


class AuthorsMessagePassing(nn.Module):
    """One step of the authors' published code, which has an MLP before the mean too, and batch norm inside.

    X  = ReLU(BN(H V₁ + c₁)) V₂ + c₂
    M  = ReLU(BN(D⁻¹ A X W₁ + b₁)) W₂ + b₂
    H' = GRU(X, M)

    H: (nodes, in_width); X, M, H': (nodes, width).
    """

    def __init__(self, in_width: int, width: int, gated: bool, first: bool) -> None:
        super().__init__()
        self.enter = nn.Linear(in_width, width)
        self.enter_norm = BatchNorm(width)
        self.state = nn.Linear(width, width)
        self.sent = nn.Linear(width, width)
        self.sent_norm = BatchNorm(width)
        self.heard = nn.Linear(width, width)
        self.combine = GatedUpdate(width) if gated else NeighboursOnly()

    def forward(self, h: Tensor | RepeatedRows, neighbours: Neighbours) -> Tensor:
        """H → H'."""
        entered = project(h, self.enter.weight) + self.enter.bias
        x = self.state(functional.relu(self.enter_norm(entered)))
        inbox = neighbours.mean(project(x, self.sent.weight)) + self.sent.bias
        message = self.heard(functional.relu(self.sent_norm(inbox)))
        return self.combine(x, message)
