"""TextING: a gated graph network on each document's own graph of words (Zhang et al., ACL 2020)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from mpad.graph.batch import GraphBatch
from mpad.graph.build import GraphConfig
from mpad.model import Gate, segment_sum
from mpad.paper.networks.config import DocumentNetwork, NetworkConfig


@dataclass(frozen=True)
class TextINGConfig(NetworkConfig):
    """Rounds of messages, and their width."""

    steps: int = 2
    hidden: int = 96


class TextING(DocumentNetwork):
    """Message passing with a gate, then a soft gate on words; the document is their mean plus their maximum.

    h⁰ = tanh(drop(x) W + b)    a = D^−½ A D^−½ h W_a    h ← GRU(h, a), the paper's gate
    g = σ(h W₁ + b) ⊙ tanh(h W₂ + b)    z = mean_v g_v + max_v g_v    logits = drop(z) W + b

    x: (nodes, vector_width), a node a distinct word; A: co-occurrences within 3 words, both ways; z: (documents,
    hidden).
    """

    graph = GraphConfig(window=3, directed=False)

    def __init__(self, config: TextINGConfig) -> None:
        super().__init__(config)
        width = config.hidden
        self.enter = nn.Linear(config.vector_width, width)
        self.messages = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(config.steps))
        self.gates = nn.ModuleList(Gate(width) for _ in range(config.steps))
        self.soft = nn.Linear(width, width)
        self.feature = nn.Linear(width, width)
        self.add_classes(width)

    def document_vectors(self, batch: GraphBatch) -> Tensor:
        """Graphs of words → z."""
        h = torch.tanh(self.enter(self.input_dropout(functional.embedding(batch.words, self.vectors))))
        weight = symmetric_weights(batch)[:, None]
        for message, gate in zip(self.messages, self.gates, strict=True):
            received = segment_sum(weight * message(h).index_select(0, batch.source), batch.target, batch.n_words)
            h = gate(h, received)
        g = torch.sigmoid(self.soft(h)) * torch.tanh(self.feature(h))
        size = batch.size.clamp(min=1)[:, None]
        highest = g.new_full((batch.n_graphs, g.shape[1]), -torch.inf)
        highest = highest.scatter_reduce(0, batch.owner[:, None].expand_as(g), g, "amax")
        return segment_sum(g, batch.owner, batch.n_graphs) / size + highest.masked_fill(highest == -torch.inf, 0.0)


def symmetric_weights(batch: GraphBatch) -> Tensor:
    """D^−½ A D^−½ along the edges: (n_edges,)."""
    degree = batch.weight.new_zeros(batch.n_words).index_add_(0, batch.target, batch.weight).clamp(min=1e-12)
    return batch.weight / torch.sqrt(degree[batch.source] * degree[batch.target])
