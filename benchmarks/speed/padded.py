"""The yardstick network: the same MPAD over padded batches, written plainly.

Every layer runs over padding too; the six products of the gate are six layers; messages are a sparse product over
the padded adjacency with the master node inside; dropout and Adam are torch's own. Softmax masks padding, so with
the same weights it gives the same logits as the packed network (a test holds it to that).
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.speed.straightforward import PaddedBatch
from mpad.config import MPADConfig


class Gate(nn.Module):
    """The gated update, layer by layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.message = nn.ModuleList(nn.Linear(width, width) for _ in range(3))  # reset, update, candidate
        self.state = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, h: Tensor, m: Tensor) -> Tensor:
        """H, M → H'."""
        reset = torch.sigmoid(self.message[0](m) + self.state[0](h))
        update = torch.sigmoid(self.message[1](m) + self.state[1](h))
        candidate = torch.tanh(self.message[2](m) + self.state[2](reset * h))
        return (1 - update) * h + update * candidate


class Step(nn.Module):
    """One round of messages: the paper's."""

    def __init__(self, in_width: int, width: int, first: bool) -> None:
        super().__init__()
        self.mlp1, self.mlp2 = nn.Linear(in_width, width), nn.Linear(width, width)
        self.project = nn.Linear(in_width, width, bias=False) if first else None
        self.gate = Gate(width)

    def forward(self, h: Tensor, mean: Callable[[Tensor], Tensor]) -> Tensor:
        """H → H'."""
        message = torch.relu(self.mlp2(torch.relu(self.mlp1(mean(h)))))
        return self.gate(h if self.project is None else self.project(h), message)


class AuthorsStep(nn.Module):
    """One round of messages: the authors' code's."""

    def __init__(self, in_width: int, width: int, first: bool) -> None:
        super().__init__()
        self.before1, self.before_norm = nn.Linear(in_width, width), nn.BatchNorm1d(width)
        self.before2 = nn.Linear(width, width)
        self.mlp1, self.mlp_norm = nn.Linear(width, width), nn.BatchNorm1d(width)
        self.mlp2 = nn.Linear(width, width)
        self.gate = Gate(width)

    def forward(self, h: Tensor, mean: Callable[[Tensor], Tensor]) -> Tensor:
        """H → H'."""
        x = self.before2(torch.relu(self.before_norm(self.before1(h))))
        message = self.mlp2(torch.relu(self.mlp_norm(self.mlp1(mean(x)))))
        return self.gate(x, message)


class Read(nn.Module):
    """Attention over (groups, rows, width) with a mask, and the master's row beside it."""

    def __init__(self, width: int, skip: bool, authors: bool) -> None:
        super().__init__()
        self.skip = skip
        self.align, self.context = nn.Linear(width, width, bias=authors), nn.Linear(width, 1, bias=False)
        self.dense = nn.Linear(width, width) if authors else None

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """H → h_G."""
        words = h[:, :-1] if self.skip else h
        score = self.context(torch.tanh(self.align(words)))
        if self.dense is not None:
            score = torch.tanh(score)
        alpha = torch.softmax(score.masked_fill(~mask[:, :, None], -1e9), dim=1) * mask[:, :, None]
        pooled = (alpha * words).sum(1)
        if self.dense is not None:
            pooled = torch.relu(self.dense(pooled))
        return torch.cat([pooled, h[:, -1]], dim=1) if self.skip else pooled


class PaddedLevel(nn.Module):
    """Message passing and readout over one kind of graph."""

    def __init__(self, config: MPADConfig, in_width: int, steps: int, master: bool, first: bool) -> None:
        super().__init__()
        step = AuthorsStep if config.mlp_before else Step
        self.steps = nn.ModuleList(
            step(config.hidden if t else in_width, config.hidden, first and t == 0) for t in range(steps)
        )
        self.reads = nn.ModuleList(Read(config.hidden, master, config.mlp_before) for _ in range(max(steps, 1)))
        width = max(steps, 1) * config.hidden * (2 if master else 1)
        self.norm, self.dense = nn.BatchNorm1d(width), nn.Linear(width, config.hidden)

    def forward(self, h: Tensor, adjacency: Tensor, mask: Tensor, n_groups: int) -> Tensor:
        """H⁰ → vectors."""
        read = []
        for number, reader in enumerate(self.reads):
            if len(self.steps):
                h = self.steps[number](h, partial(torch.sparse.mm, adjacency))
            read.append(reader(h.view(n_groups, -1, h.shape[1]), mask))
        return torch.relu(self.dense(self.norm(torch.cat(read, dim=1))))


class PaddedMPAD(nn.Module):
    """MPAD over padded batches."""

    def __init__(self, config: MPADConfig, vectors: Tensor) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding.from_pretrained(vectors, freeze=True)
        self.input_dropout = nn.Dropout(config.dropout)
        self.words = PaddedLevel(config, config.vector_width, config.steps, master=True, first=True)
        self.sentences = None
        if config.hierarchical:
            steps = 0 if config.variant == "sentence-att" else config.steps
            self.sentences = PaddedLevel(config, config.hidden, steps, master=False, first=False)
        self.dropout = nn.Dropout(config.dropout)
        self.classes = nn.Linear(config.hidden, config.n_classes)

    def forward(self, batch: PaddedBatch) -> Tensor:
        """Logits of a batch."""
        h = self.input_dropout(self.embedding(batch.ids))
        vectors = self.words(h, batch.adjacency, batch.is_word, batch.is_word.shape[0])
        if self.sentences is not None:
            graph = batch.path if self.config.variant == "path" else batch.clique
            vectors = self.sentences(vectors, graph, batch.is_graph, batch.is_graph.shape[0])
        logits: Tensor = self.classes(self.dropout(vectors))
        return logits


def copy_weights(packed: nn.Module, padded: nn.Module) -> None:
    """Give a yardstick the packed network's weights: the fused gate products are taken apart."""
    source, target = packed.state_dict(), {}
    for name, value in padded.state_dict().items():
        if name.startswith("embedding"):
            target[name] = value
            continue
        ours = name if name.startswith(("words.", "sentences.", "classes.")) else f"words.{name}"  # PyG's is flat
        ours = ours.replace(".steps.", ".rounds.").replace(".reads.", ".readout.attention.")
        for part in ("norm", "dense"):  # of the whole level
            for level in ("words", "sentences"):
                ours = ours.replace(f"{level}.{part}.", f"{level}.readout.{part}.")
        if ".gate." in name:
            kind, number, leaf = name.split(".gate.")[1].split(".")
            stem = ours.split(".gate.")[0] + ".gate."
            fused = {"message": "from_message", "state": "from_reset" if number == "2" else "from_state"}[kind]
            whole = source[f"{stem}{fused}.{leaf}"]
            width = padded.get_parameter(name).shape[0]
            place = 0 if fused == "from_reset" else int(number)
            target[name] = whole[place * width : (place + 1) * width]
        else:
            target[name] = source[ours]
    padded.load_state_dict(target)


def train_epoch(model: nn.Module, optimiser: torch.optim.Optimizer, batches: list[PaddedBatch]) -> None:
    """One pass over the batches."""
    model.train()
    for batch in batches:
        optimiser.zero_grad()
        functional.cross_entropy(model(batch), batch.labels).backward()
        optimiser.step()
