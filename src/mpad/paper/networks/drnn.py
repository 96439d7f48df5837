"""DRNN: recursive networks in layers, over binary trees (Irsoy & Cardie, NeurIPS 2014)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from mpad.paper.networks.config import NetworkConfig
from mpad.paper.networks.tree_network import TreeNetwork, by_level
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
        super().__init__(config)
        self.add_classes(config.hidden)
        width = config.hidden
        self.from_word = nn.Linear(config.vector_width, 2 * width, bias=False)  # W_l, W_r of children that are words
        self.from_child = nn.ModuleList(nn.Linear(width, 2 * width, bias=False) for _ in range(config.layers))
        self.bias = nn.Parameter(torch.zeros(config.layers, width))
        self.up_of_word = nn.Linear(config.vector_width, width, bias=False)  # V of layer 2 over a word
        self.up = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(config.layers - 1))

    def states(self, x: Tensor, batch: TreeBatch) -> Tensor:
        """Word vectors → states of the last layer."""
        leaves, children, place = by_level(batch)
        words = x[leaves]
        h = self._layer(0, words.new_zeros(len(words), self.config.hidden), self.from_word(words), children)
        inner = h[len(words) :]
        if self.config.layers == 1:  # a leaf has no state of its own yet: its word's message stands for it
            return torch.cat([functional.relu(self.up_of_word(words)), inner])[place]
        for layer in range(1, self.config.layers):
            first = layer == 1
            lifted = torch.cat([self.up_of_word(words), self.up[0](inner)]) if first else self.up[layer - 1](h)
            leaf = functional.relu(lifted[: len(words)] + self.bias[layer])
            h = self._layer(layer, leaf, self.from_child[layer](leaf), children, lifted)
        return h[place]

    def _layer(
        self, layer: int, h: Tensor, sent: Tensor, children: list[tuple[Tensor, Tensor]], lower: Tensor | None = None
    ) -> Tensor:
        """One layer, from the leaves (h) up; `sent` is what nodes tell their parent, as its left or its right child."""
        width = self.config.hidden
        for left, right in children:
            total = sent[left, :width] + sent[right, width:] + self.bias[layer]
            if lower is not None:
                total = total + lower[len(h) : len(h) + len(left)]
            own = functional.relu(total)
            h, sent = torch.cat([h, own]), torch.cat([sent, self.from_child[layer](own)])
        return h
