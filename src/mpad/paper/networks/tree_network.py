"""The base of networks over trees: every labeled node is classified; the root is the prediction."""

import torch
from torch import Tensor
from torch.nn import functional

from mpad.network import Output
from mpad.paper.networks.config import DocumentNetwork
from mpad.sequence.trees import TreeBatch


class TreeNetwork(DocumentNetwork):
    """States of all nodes, by a subclass; then one linear map to the classes at each.

    loss = −log p(root) of each tree, and −log p(node) of all its other nodes that have a class, per tree
    """

    reads_trees = True

    def states(self, x: Tensor, batch: TreeBatch) -> Tensor:
        """Vectors of the nodes' words (zeros inside) → states: (n_nodes, vector_width) → (n_nodes, width)."""
        raise NotImplementedError

    def forward(self, batch: TreeBatch) -> Output:
        """Trees → logits of their roots, and the loss of their other nodes."""
        rows = functional.embedding(batch.word.clamp(min=0), self.vectors) * (batch.word >= 0)[:, None]
        h = self.states(self.input_dropout(rows), batch)
        logits = self.classes(self.dropout(h))
        others = batch.target.clone()
        others[batch.root] = -1
        extra = functional.cross_entropy(logits, others, ignore_index=-1, reduction="sum") / batch.root.shape[0]
        return Output(logits[batch.root], h[batch.root], extra=extra if self.training else None)


def by_level(batch: TreeBatch) -> tuple[Tensor, list[tuple[Tensor, Tensor]], Tensor]:
    """Order nodes by level, from the leaves up: the leaves, and of each level above the places of both children.

    The last tensor has each node's place in that order, to bring states back into the order of nodes: (n_nodes,).
    """
    levels = batch.levels()
    place = torch.argsort(torch.cat(levels))
    return levels[0], [(place[batch.left[nodes]], place[batch.right[nodes]]) for nodes in levels[1:]], place
