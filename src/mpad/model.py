"""MPAD (Nikolentzos, Tixier and Vazirgiannis, AAAI 2020) in plain PyTorch.

Four variants, every ablation and preset, chosen by `MPADConfig`; kernels, inference and ONNX are tested against it.
Equation numbers are the paper's. A batch is one disconnected graph: rows of words, then one master node per graph.
"""

from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mpad.config import MPADConfig
from mpad.dropout import Dropout
from mpad.graph.batch import GraphBatch
from mpad.network import GraphNetwork, Output


def segment_sum(x: Tensor, owner: Tensor, n: int) -> Tensor:
    """Sum the rows of each segment: (rows, ...) → (n, ...). `owner` (rows,) is the segment of each row."""
    return x.new_zeros(n, *x.shape[1:]).index_add(0, owner, x)


def segment_softmax(score: Tensor, owner: Tensor, n: int) -> Tensor:
    """Softmax within each segment: (rows,) → (rows,)."""
    with torch.no_grad():  # subtracting the maximum keeps exp in range and does not change the result
        top = score.new_full((n,), -torch.inf).scatter_reduce(0, owner, score, "amax")
    e = torch.exp(score - top[owner])
    return e / segment_sum(e, owner, n)[owner]


@dataclass
class WordGraph:
    """The word co-occurrence graphs of a batch, with or without a master node."""

    batch: GraphBatch
    master: bool
    mean: bool  # divide by in-degrees; off for the ablation "no renormalization"
    edge_scale: Tensor | None = None  # (edges,) factors of what edges carry; in-degrees stay

    def __post_init__(self) -> None:
        self.owner, self.n = self.batch.owner, self.batch.n_graphs

    def aggregate(self, x: Tensor) -> Tensor:
        """D⁻¹ A x (eq. 4) without forming D or A: (words [+ masters], width) → the same."""
        batch, n = self.batch, self.owner.shape[0]
        if x.shape[0] != (rows := n + self.n * self.master):
            raise ValueError(f"these graphs have {rows} rows (words, then master nodes), but x has {x.shape[0]}")
        weight = batch.weight.to(x.dtype)
        carried = weight if self.edge_scale is None else weight * self.edge_scale
        received = segment_sum(x[batch.source] * carried[:, None], batch.target, n)
        degree = segment_sum(weight, batch.target, n)
        if self.master:
            received, degree = received + x[n:][self.owner], degree + 1
        if self.mean:
            received = received / degree.clamp(min=torch.finfo(x.dtype).tiny)[:, None]
        if not self.master:
            return received
        of_words = segment_sum(x[:n], self.owner, self.n)  # the master's inbox
        return torch.cat([received, of_words / batch.size.clamp(min=1)[:, None] if self.mean else of_words])


@dataclass
class SentenceGraph:
    """The graph of sentences of each document: a clique, or a path from the first sentence to the last."""

    owner: Tensor  # (sentences,) document of each sentence
    count: Tensor  # (documents,) sentences of each document
    path: bool
    mean: bool

    def __post_init__(self) -> None:
        self.n = self.count.shape[0]

    def aggregate(self, x: Tensor) -> Tensor:
        """Receive from the previous sentence (path) or the mean of all others (clique): (sentences, width)."""
        owner = self.owner
        if self.path:
            follows = torch.cat([owner[:1] < 0, owner[1:] == owner[:-1]])  # the first sentence follows none
            return torch.cat([x[-1:], x[:-1]]) * follows[:, None]
        others = segment_sum(x, owner, self.n)[owner] - x
        return others / (self.count - 1).clamp(min=1)[owner][:, None] if self.mean else others


Graph: TypeAlias = WordGraph | SentenceGraph


class BatchNorm(nn.BatchNorm1d):
    """Batch norm over rows. A single row has no variance: it is normalized by the running averages."""

    def forward(self, input: Tensor) -> Tensor:
        """(rows, width) → the same."""
        values = self.running_mean, self.running_var, self.weight, self.bias
        return F.batch_norm(input, *values, self.training and len(input) > 1, self.momentum or 0.0, self.eps)


class Gate(nn.Module):
    """COMBINE (eq. 5): a GRU (eq. 6) that resets before the linear map (`nn.GRUCell` resets after it).

    R = σ(W_R M + U_R H + b_R)    Z = σ(W_Z M + U_Z H + b_Z)    C = tanh(W M + U (R ⊙ H) + b)
    H' = (1 − Z) ⊙ H + Z ⊙ C
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.from_message = nn.Linear(width, 3 * width)  # W_R, W_Z, W
        self.from_state = nn.Linear(width, 2 * width, bias=False)  # U_R, U_Z
        self.from_reset = nn.Linear(width, width, bias=False)  # U

    def forward(self, h: Tensor, m: Tensor) -> Tensor:
        """H, M → H': (..., width) each."""
        gates, candidate = self.from_message(m).split([2 * h.shape[-1], h.shape[-1]], dim=-1)
        reset, update = torch.sigmoid(gates + self.from_state(h)).chunk(2, dim=-1)
        return torch.lerp(h, torch.tanh(candidate + self.from_reset(reset * h)), update)


class MessagePassing(nn.Module):
    """One round: M = MLP(D⁻¹ A H) (AGGREGATE, eq. 4), then H' = GRU(H, M) (COMBINE, eqs. 5, 6).

    The authors' code has another MLP before the mean, and batch norm in both. The first round maps word vectors to the
    width of the GRU's state with a matrix of its own; the paper does not say how.
    """

    def __init__(self, config: MPADConfig, in_width: int, first: bool) -> None:
        super().__init__()
        d, gated, two_mlps = config.hidden, config.combine == "gru", config.mlp_before
        self.relu = config.mlp_relu
        self.before1 = nn.Linear(in_width, d) if two_mlps else None
        self.before_norm = BatchNorm(d) if two_mlps and config.mlp_norm else nn.Identity()
        self.before2 = nn.Linear(d, d) if two_mlps else None
        self.mlp1 = nn.Linear(d if two_mlps else in_width, d)
        self.mlp_norm = BatchNorm(d) if config.mlp_norm else nn.Identity()
        self.mlp2 = nn.Linear(d, d)
        first = first or in_width != d
        self.project = nn.Linear(in_width, d, bias=False) if first and gated and not two_mlps else None
        self.gate = Gate(d) if gated else None
        for linear in [x for x in (self.before1, self.mlp1) if x is not None and config.mlp_norm]:
            linear.bias.requires_grad_(False)  # batch norm removes it: its gradient would be rounding

    def forward(self, h: Tensor, graph: Graph) -> Tensor:
        """H → H': (rows, in_width) → (rows, hidden)."""
        if self.before1 is not None and self.before2 is not None:
            h = self.before2(F.relu(self.before_norm(self.before1(h))))
        m = self.mlp2(F.relu(self.mlp_norm(self.mlp1(graph.aggregate(h)))))
        m = F.relu(m) if self.relu else m
        if self.gate is None:  # the ablation "neighbors only"
            return m
        return self.gate(h if self.project is None else self.project(h), m)


class Attention(nn.Module):
    """Self-attention over the rows of each graph (eq. 7): α = softmax(v · tanh(W_A H)), u = Σ α H."""

    def __init__(self, config: MPADConfig, d: int) -> None:
        super().__init__()
        self.bounded = config.score_tanh
        self.align, self.context = nn.Linear(d, d, bias=config.attention_bias), nn.Linear(d, 1, bias=False)
        self.dense = nn.Linear(d, d) if config.attention_dense else None

    def forward(self, h: Tensor, owner: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """H (rows, width) → u (n, width), α (rows,) detached. A graph without rows gets zeros."""
        score = self.context(torch.tanh(self.align(h)))[:, 0]
        alpha = segment_softmax(torch.tanh(score) if self.bounded else score, owner, n)
        u = segment_sum(alpha[:, None] * h, owner, n)
        return u if self.dense is None else F.relu(self.dense(u)), alpha.detach()


class MeanOfWords(nn.Module):
    """The readout before the first round (t = 0), which the pretrained encoder adds: the mean of the word vectors."""

    def forward(self, h: Tensor, graph: Graph) -> Tensor:
        """H⁰ (rows, width) → (n, width), without the masters."""
        h, ones = h[: graph.owner.shape[0]], torch.ones_like(graph.owner)
        return segment_sum(h, graph.owner, graph.n) / segment_sum(ones, graph.owner, graph.n).clamp(min=1)[:, None]


class Readout(nn.Module):
    """READOUT (eq. 8): concatenate attention and master state of every round; batch norm; dense layer with ReLU."""

    def __init__(self, config: MPADConfig, width: int, rounds: int, skip: bool, more: int) -> None:
        super().__init__()
        self.skip = skip
        self.attention = nn.ModuleList(Attention(config, width) for _ in range(rounds))
        read = rounds * width * (2 if skip else 1) + more
        self.norm, self.dense = BatchNorm(read), nn.Linear(read, config.document_width)

    def pool(self, states: list[Tensor], graph: Graph) -> tuple[Tensor, Tensor]:
        """H¹ … H^T (rows, width) → (n, rounds · width [· 2]), attention (rounds, rows without masters)."""
        owner, n, parts, alphas = graph.owner, graph.owner.shape[0], [], []
        for attention, h in zip(self.attention, states, strict=True):
            words, masters = h.split([n, h.shape[0] - n])
            # Without the skip connection, a master is a node like the others.
            everything = owner if self.skip else torch.cat([owner, torch.arange(masters.shape[0], device=h.device)])
            u, alpha = attention(words if self.skip else h, everything, graph.n)
            parts += [u, masters] if self.skip else [u]
            alphas.append(alpha[:n])
        return torch.cat(parts, dim=1), torch.stack(alphas)

    def forward(self, states: list[Tensor], graph: Graph, mean: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """H¹ … H^T [, mean of H⁰] → vectors (n, document_width), attention."""
        read, attention = self.pool(states, graph)
        read = read if mean is None else torch.cat([read, mean], dim=1)
        return F.relu(self.dense(self.norm(read))), attention


class GraphEncoder(nn.Module):
    """Rounds of message passing, H^t = MessagePassing(H^(t−1)), and the readout of all of them."""

    def __init__(self, config: MPADConfig, in_width: int, rounds: int, master: bool, first: bool) -> None:
        super().__init__()
        widths = [in_width, *[config.hidden] * rounds]
        self.rounds = nn.ModuleList(MessagePassing(config, widths[t], first and t == 0) for t in range(rounds))
        self.mean = MeanOfWords() if first and config.read_words else None
        more = 0 if self.mean is None else in_width
        self.readout = Readout(config, widths[-1], max(rounds, 1), master and config.master_skip, more)

    def forward(self, h: Tensor, graph: Graph) -> tuple[Tensor, Tensor]:
        """H⁰ (rows, in_width) → vectors (n, document_width), attention. Without rounds, H⁰ itself is read out."""
        states, mean = [] if self.rounds else [h], None if self.mean is None else self.mean(h, graph)
        for message_passing in self.rounds:
            states.append(h := message_passing(h, graph))
        return self.readout(states, graph, mean)


class MPAD(GraphNetwork):
    """Message passing attention network: word graphs → logits.

    mpad            one graph per document: its vector is the document's
    sentence-att    one graph per sentence, and attention over the sentence vectors
    clique, path    one graph per sentence, and a second encoder over a graph of sentences without a master node

    The sentence level has a batch norm in every preset, which neither the paper nor the authors' code has: docs/LOG.md.
    """

    stackable = True
    config: MPADConfig

    def __init__(self, config: MPADConfig) -> None:
        super().__init__(config)
        self.by_sentence = config.hierarchical
        self.input_dropout, self.dropout = Dropout(config.dropout, layer=0), Dropout(config.dropout, layer=1)
        self.words = GraphEncoder(config, config.vector_width, config.steps, config.master_node, first=True)
        rounds = 0 if config.variant == "sentence-att" else config.steps
        width = config.document_width
        self.sentences = GraphEncoder(config, width, rounds, False, first=False) if self.by_sentence else None
        self.classes = nn.Linear(width, config.n_classes)

    def forward(self, batch: GraphBatch, edge_scale: Tensor | None = None, vectors: Tensor | None = None) -> Output:
        """Classify a batch. `edge_scale` scales what edges carry; `vectors` replaces the table of word vectors."""
        config = self.config
        graph = WordGraph(batch, config.master_node, config.renormalise, edge_scale)
        x, word_attention = self.words(self.embed(batch, vectors), graph)
        sentence_attention = None
        if self.sentences is not None:
            owner, count, path = batch.graph_owner, batch.graph_count, config.variant == "path"
            x, sentence_attention = self.sentences(x, SentenceGraph(owner, count, path, config.renormalise))
        return Output(self.classes(self.dropout(x)), x, word_attention, sentence_attention)

    def embed(self, batch: GraphBatch, vectors: Tensor | None = None) -> Tensor:
        """H⁰: the vector of each word, then a zero row per master node. Nodes of one word share a dropout mask."""
        table = vectors if vectors is not None else self.vectors if batch.rows is None else batch.rows
        h = F.embedding(batch.words, table).to(self.classes.weight.dtype)
        h = self.input_dropout(h, batch.words)
        return F.pad(h, (0, 0, 0, batch.n_graphs)) if self.config.master_node else h
