"""DRNN: recursive networks in layers, over binary trees (Irsoy & Cardie, NeurIPS 2014)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from mpad.paper.networks.config import NetworkConfig
from mpad.paper.networks.tree_network import TreeNetwork, places
from mpad.sequence.trees import TreeBatch


@dataclass(frozen=True)
class DRNNConfig(NetworkConfig):
    """Layers, and units of each."""

    layers: int = 3
    hidden: int = 150


class DRNN(TreeNetwork):
    """Layers of recursive networks: a node hears its children in its own layer, and itself in the layer below.

    layer 1   h = ReLU(W_l y_l + W_r y_r + b), with maps of their own for children that are words; a leaf is its word
    layer k   hᵏ = ReLU(W_l hᵏ_l + W_r hᵏ_r + V hᵏ⁻¹ + b), a leaf without the children's part

    x: (n_nodes, vector_width) → the last layer's h: (n_nodes, hidden); all nodes of a height at once.
    """

    def __init__(self, config: DRNNConfig) -> None:
        super().__init__(config, config.hidden)
        width = config.hidden
        self.from_word = nn.Linear(config.vector_width, 2 * width, bias=False)  # W_l, W_r of children that are words
        self.from_child = nn.ModuleList(nn.Linear(width, 2 * width, bias=False) for _ in range(config.layers))
        self.bias = nn.Parameter(torch.zeros(config.layers, width))
        self.up_of_word = nn.Linear(config.vector_width, width, bias=False)  # V of layer 2 over a word
        self.up = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(config.layers - 1))

    def states(self, x: Tensor, batch: TreeBatch) -> Tensor:
        """Word vectors → states of the last layer."""
        levels = batch.levels()
        at = places(levels)
        words = x[levels[0]]
        h = self._layer(0, self.from_word(words), None, levels, at, batch)
        inner, below = h[len(levels[0]) :], words
        if self.config.layers == 1:  # a leaf has no state of its own yet: its word's message stands for it
            leaf = functional.relu(self.up_of_word(words))
            return torch.cat([leaf, inner])[at]
        for layer in range(1, self.config.layers):
            first = layer == 1
            lifted = torch.cat([self.up_of_word(below), self.up[0](inner)]) if first else self.up[layer - 1](h)
            leaf = functional.relu(lifted[: len(levels[0])] + self.bias[layer])
            h = self._layer(layer, self.from_child[layer](leaf), (leaf, lifted), levels, at, batch)
        return h[at]

    def _layer(
        self,
        layer: int,
        sent: Tensor,
        lower: tuple[Tensor, Tensor] | None,
        levels: list[Tensor],
        at: Tensor,
        batch: TreeBatch,
    ) -> Tensor:
        """One layer, from the leaves up; `sent` is what leaves tell their parent, as its left or its right child."""
        width = self.config.hidden
        h = sent.new_zeros(len(levels[0]), width) if lower is None else lower[0]
        start = len(levels[0])
        for nodes in levels[1:]:
            left, right = at[batch.left[nodes]], at[batch.right[nodes]]
            total = sent[left, :width] + sent[right, width:] + self.bias[layer]
            if lower is not None:
                total = total + lower[1][start : start + len(nodes)]
            own = functional.relu(total)
            h, sent = torch.cat([h, own]), torch.cat([sent, self.from_child[layer](own)])
            start += len(nodes)
        return h
