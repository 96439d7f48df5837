"""Tree-LSTM over binary constituency trees (Tai et al., ACL 2015)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mpad.paper.networks.config import NetworkConfig
from mpad.paper.networks.tree_network import TreeNetwork, by_level
from mpad.sequence.trees import TreeBatch


@dataclass(frozen=True)
class TreeLSTMConfig(NetworkConfig):
    """Units of the memory."""

    hidden: int = 150


class TreeLSTM(TreeNetwork):
    """An LSTM whose memory flows from both children to their parent, with a forget gate for each (eqs. 9 to 14, N = 2).

    leaf   i, o = σ(x W + b), u = tanh(x W + b)    c = i ⊙ u
    inner  i, f_l, f_r, o = σ(h_l U + h_r V + b), u = tanh(h_l U + h_r V + b)    c = i ⊙ u + f_l ⊙ c_l + f_r ⊙ c_r
    h = o ⊙ tanh(c)

    x: (n_nodes, vector_width) → h: (n_nodes, hidden); all nodes of a height at once.
    """

    def __init__(self, config: TreeLSTMConfig) -> None:
        super().__init__(config)
        self.add_classes(config.hidden)
        self.leaf = nn.Linear(config.vector_width, 3 * config.hidden)
        self.inner = nn.Linear(2 * config.hidden, 5 * config.hidden)

    def states(self, x: Tensor, batch: TreeBatch) -> Tensor:
        """Word vectors → hidden states."""
        leaves, children, place = by_level(batch)
        i, o, u = self.leaf(x[leaves]).chunk(3, 1)
        cs = torch.sigmoid(i) * torch.tanh(u)
        hs = torch.sigmoid(o) * torch.tanh(cs)
        for left, right in children:
            i, f_left, f_right, o, u = self.inner(torch.cat([hs[left], hs[right]], 1)).chunk(5, 1)
            c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f_left) * cs[left] + torch.sigmoid(f_right) * cs[right]
            cs = torch.cat([cs, c])
            hs = torch.cat([hs, torch.sigmoid(o) * torch.tanh(c)])
        return hs[place]
