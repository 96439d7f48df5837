"""The same network as a user of PyTorch Geometric would write it: packed batches, master nodes and their edges as such.

A second yardstick beside padding: "faster than padding" and "faster than good torch code" are different claims.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import MessagePassing, global_add_pool
from torch_geometric.utils import softmax

from benchmarks.speed.padded import AuthorsStep, Step
from mpad.config import MPADConfig
from mpad.graph.packed import PackedGraphs


def batches(graphs: PackedGraphs, labels: list[int], n_words: int, size: int) -> list[Any]:
    """PyG's batches: a node a word and one, the last, for the master; edges with D⁻¹ in their weights."""
    documents = []
    for k in range(graphs.n_graphs):
        first, last = graphs.node_start[k], graphs.node_start[k + 1]
        edges = slice(graphs.edge_start[k], graphs.edge_start[k + 1])
        n = int(last - first)
        words, master = np.arange(n), np.full(n, n)
        source = np.concatenate([graphs.source[edges], master, words])
        target = np.concatenate([graphs.target[edges], words, master])
        weight = np.concatenate([graphs.weight[edges], np.ones(2 * n, np.float32)])
        degree = np.bincount(target, weight, n + 1)
        ids = np.append(graphs.words[first:last], n_words)
        documents.append(
            Data(
                x=torch.from_numpy(ids.astype(np.int64)),
                edge_index=torch.from_numpy(np.stack([source, target]).astype(np.int64)),
                edge_weight=torch.from_numpy((weight / np.maximum(degree[target], 1)).astype(np.float32)),
                y=torch.tensor(labels[k]),
            )
        )
    return [Batch.from_data_list(documents[start : start + size]) for start in range(0, len(documents), size)]


class _Mean(MessagePassing):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(aggr="add")

    def forward(self, h: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
        """D⁻¹ A H."""
        return torch.as_tensor(self.propagate(edge_index, h=h, weight=weight))

    def message(self, h_j: Tensor, weight: Tensor) -> Tensor:
        """What an edge carries."""
        return weight[:, None] * h_j


class _Read(nn.Module):
    def __init__(self, width: int, authors: bool) -> None:
        super().__init__()
        self.align, self.context = nn.Linear(width, width, bias=authors), nn.Linear(width, 1, bias=False)
        self.dense = nn.Linear(width, width) if authors else None

    def forward(self, h: Tensor, is_master: Tensor, owner: Tensor, n: int) -> Tensor:
        """H → h_G."""
        words, owners = h[~is_master], owner[~is_master]
        score = self.context(torch.tanh(self.align(words)))
        alpha = softmax(score if self.dense is None else torch.tanh(score), owners, num_nodes=n)
        pooled = global_add_pool(alpha * words, owners, size=n)
        if self.dense is not None:
            pooled = torch.relu(self.dense(pooled))
        return torch.cat([pooled, h[is_master]], dim=1)


class PyGMPAD(nn.Module):
    """MPAD, flat, over PyG's batches."""

    def __init__(self, config: MPADConfig, vectors: Tensor) -> None:
        super().__init__()
        authors, width = config.mlp_before, config.hidden
        step = AuthorsStep if authors else Step
        self.embedding = nn.Embedding.from_pretrained(torch.cat([vectors, vectors.new_zeros(1, vectors.shape[1])]))
        self.input_dropout, self.dropout = nn.Dropout(config.dropout), nn.Dropout(config.dropout)
        self.mean = _Mean()
        widths = [width if t else config.vector_width for t in range(config.steps)]
        self.steps = nn.ModuleList(step(n, width, t == 0) for t, n in enumerate(widths))
        self.reads = nn.ModuleList(_Read(width, authors) for _ in range(config.steps))
        self.norm = nn.BatchNorm1d(2 * width * config.steps)
        self.dense = nn.Linear(2 * width * config.steps, width)
        self.classes = nn.Linear(width, config.n_classes)

    def forward(self, batch: Any) -> Tensor:
        """Logits of a batch."""
        h, read = self.input_dropout(self.embedding(batch.x)), []
        is_master = batch.x == self.embedding.num_embeddings - 1
        for step, reader in zip(self.steps, self.reads, strict=True):
            h = step(h, lambda rows: self.mean(rows, batch.edge_index, batch.edge_weight))
            read.append(reader(h, is_master, batch.batch, batch.num_graphs))
        vectors = torch.relu(self.dense(self.norm(torch.cat(read, dim=1))))
        logits: Tensor = self.classes(self.dropout(vectors))
        return logits


def train_epoch(model: PyGMPAD, optimiser: torch.optim.Optimizer, batches: list[Any]) -> None:
    """One pass over the batches."""
    model.train()
    for batch in batches:
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(batch), batch.y).backward()
        optimiser.step()
