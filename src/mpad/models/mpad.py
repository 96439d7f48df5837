"""MPAD: all four variants and every ablation, by configuration."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from mpad.graph.batch import GraphBatch
from mpad.models.config import MPADConfig
from mpad.nn.dropout import Dropout
from mpad.nn.messages import AuthorsMessagePassing, MessagePassing
from mpad.nn.neighbours import Clique, Neighbours, Path, WordNeighbours
from mpad.nn.norm import BatchNorm
from mpad.nn.readout import Readout
from mpad.nn.rows import RepeatedRows


@dataclass(frozen=True)
class Output:
    """What the network says of a batch."""

    logits: Tensor  # (n_documents, n_classes)
    vectors: Tensor  # (n_documents, hidden), the document vectors that the last layer classifies
    word_attention: Tensor  # (steps, n_nodes), sums to 1 over the words of a graph
    sentence_attention: Tensor | None  # (steps or 1, n_graphs), sums to 1 over the sentences of a document


class Level(nn.Module):
    """Message passing and readout over one kind of graph (eq. 8, "multi-readout").

    h_G = CONCAT(READOUT(H^t) | t = 1 … T)    vector = ReLU(BN(h_G) W + b)

    H⁰: (nodes, in_width) → vectors: (groups, hidden). With no steps at all, H⁰ itself is read out.
    """

    def __init__(self, config: MPADConfig, in_width: int, steps: int, master: bool, first: bool) -> None:
        super().__init__()
        step = AuthorsMessagePassing if config.authors else MessagePassing
        width, gated, skip = config.hidden, config.combine == "gru", master and config.master_skip
        self.steps = nn.ModuleList(
            step(width if t else in_width, width, gated, first=first and t == 0) for t in range(steps)
        )
        readouts = [Readout(width, skip, config.authors) for _ in range(max(steps, 1))]
        self.readouts = nn.ModuleList(readouts)
        read = sum(readout.out_width for readout in readouts)
        self.norm = BatchNorm(read)
        self.dense = nn.Linear(read, width)

    def forward(
        self, h: Tensor | RepeatedRows, neighbours: Neighbours, owner: Tensor, n_groups: int
    ) -> tuple[Tensor, Tensor]:
        """H⁰ → vectors, and the attention at each step: (steps, words)."""
        states = []
        for step in self.steps:
            h = step(h, neighbours)
            states.append(h)
        read = [readout(h, owner, n_groups) for readout, h in zip(self.readouts, states or [h], strict=True)]
        vector = self.norm(torch.cat([part for part, _ in read], dim=1))
        return functional.relu(self.dense(vector)), torch.stack([alpha for _, alpha in read])


class MPAD(nn.Module):
    """Message passing attention network: a batch of graphs of words → logits.

    words   H⁰ = word vectors, the master's row zero → Level over words → a vector per graph
    mpad            a graph is a document: that vector is the document's
    sentence-att    a graph is a sentence: attention over the sentence vectors
    clique, path    a second Level over a graph of sentences, without a master node
    then    dropout, and one linear map to the classes
    """

    def __init__(self, config: MPADConfig) -> None:
        super().__init__()
        self.config = config
        table = torch.zeros(config.n_words, config.vector_width)
        if config.learn_vectors:
            self.vectors = nn.Parameter(table)
        else:
            self.register_buffer("vectors", table, persistent=False)
        # The paper says that it uses dropout, not where; here is where the authors' code has it too.
        self.input_dropout = Dropout(config.dropout)
        self.words = Level(config, config.vector_width, config.steps, config.master_node, first=True)
        self.sentences = None
        if config.hierarchical:
            steps = 0 if config.variant == "sentence-att" else config.steps
            self.sentences = Level(config, config.hidden, steps, master=False, first=False)
        self.dropout = Dropout(config.dropout)
        self.classes = nn.Linear(config.hidden, config.n_classes)

    def forward(self, batch: GraphBatch) -> Output:
        """Classify a batch."""
        config = self.config
        neighbours = WordNeighbours(batch, config.master_node, config.renormalise)
        vectors, attention = self.words(self.embed(batch), neighbours, batch.owner, batch.n_graphs)
        sentence_attention = None
        if self.sentences is not None:
            graph = self.sentence_graph(batch)
            vectors, sentence_attention = self.sentences(vectors, graph, batch.graph_owner, batch.n_documents)
        logits = self.classes(self.dropout(vectors)).float()
        return Output(logits, vectors, attention, sentence_attention)

    def embed(self, batch: GraphBatch) -> RepeatedRows:
        """H⁰: the vector of each word, then a zero row for each master node. (nodes, vector_width)."""
        distinct, index = torch.unique(batch.words, return_inverse=True)
        if self.config.master_node:
            index = torch.cat([index, index.new_full((batch.n_graphs,), distinct.shape[0])])
        return RepeatedRows(self.input_dropout(self.vectors.index_select(0, distinct)), index)

    def sentence_graph(self, batch: GraphBatch) -> Neighbours:
        """The graph over the sentences of each document."""
        if self.config.variant == "path":
            return Path(batch)
        return Clique(batch, self.config.renormalise)
