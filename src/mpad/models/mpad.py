"""MPAD: all four variants and every ablation, by configuration."""

from typing import cast

import torch
from torch import Tensor, nn

from mpad.graph.batch import GraphBatch
from mpad.graph.planned import PlannedBatch
from mpad.models.config import MPADConfig
from mpad.models.network import Network, Output
from mpad.nn.dropout import Dropout
from mpad.nn.linear import Linear
from mpad.nn.messages import AuthorsMessagePassing, MessagePassing
from mpad.nn.neighbours import Clique, Neighbours, Path, word_neighbours
from mpad.nn.norm import BatchNorm
from mpad.nn.readout import Readout, read_whole
from mpad.nn.rows import RepeatedRows, StackedRows, distinct_rows, embed_planned
from mpad.nn.segments import Groups


class Level(nn.Module):
    """Message passing and readout over one kind of graph (eq. 8, "multi-readout").

    h_G = CONCAT(READOUT(H^t) | t = 1 … T)    vector = ReLU(BN(h_G) W + b)

    H⁰: (nodes, in_width) → vectors: (groups, hidden). With no steps at all, H⁰ itself is read out.
    (On a CPU, in training, rounds and readouts are one call each: hooks of the layers inside them are not called.)
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
        self.dense = Linear(read, width)

    def forward(
        self,
        h: Tensor | RepeatedRows | StackedRows,
        neighbours: Neighbours,
        groups: Groups,
        n_words: int,
        counted: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """H⁰ → vectors, and the attention at each step: (steps, words)."""
        states: list[Tensor] = []
        for step in self.steps:
            states.append(step(states[-1] if states else h, neighbours))
        if isinstance(h, Tensor) and not states:
            states = [h]
        readouts = cast(list[Readout], list(self.readouts))
        whole = read_whole(readouts, self.norm, self.dense, states, groups, n_words)
        if whole is not None:
            return whole
        read = [readout(h, groups, n_words) for readout, h in zip(readouts, states, strict=True)]
        vector = self.norm(torch.cat([part for parts, _ in read for part in parts], dim=-1), counted)
        return self.dense.relu(vector), torch.stack([alpha for _, alpha in read])


class MPAD(Network):
    """Message passing attention network: a batch of graphs of words → logits.

    words   H⁰ = word vectors, the master's row zero → Level over words → a vector per graph
    mpad            a graph is a document: that vector is the document's
    sentence-att    a graph is a sentence: attention over the sentence vectors
    clique, path    a second Level over a graph of sentences, without a master node
    then    dropout, and one linear map to the classes
    """

    stackable = True
    config: MPADConfig

    def __init__(self, config: MPADConfig) -> None:
        super().__init__(config)
        self.by_sentence = config.hierarchical
        # The paper says that it uses dropout, not where; here is where the authors' code has it too.
        self.input_dropout = Dropout(config.dropout, place=0)
        self.words = Level(config, config.vector_width, config.steps, config.master_node, first=True)
        self.sentences = None
        if config.hierarchical:
            steps = 0 if config.variant == "sentence-att" else config.steps
            self.sentences = Level(config, config.hidden, steps, master=False, first=False)
        self.dropout = Dropout(config.dropout, place=1)
        self.classes = Linear(config.hidden, config.n_classes)

    def forward(self, batch: GraphBatch | PlannedBatch, heard_by: Neighbours | None = None) -> Output:
        """Classify a batch: logits ([models,] documents, classes). `heard_by` stands in for the batch's own edges."""
        config, words, sentences = self.config, *read_groups(batch)
        graphs, documents = (None, None) if batch.slabs is None else (batch.slabs.graphs, batch.slabs.documents)
        neighbours = heard_by or word_neighbours(batch, config.master_node, config.renormalise)
        n_words, n_graphs = batch.n_words // batch.n_models, batch.n_graphs // batch.n_models
        vectors, attention = self.words(self.embed(batch), neighbours, words, n_words, graphs)
        sentence_attention = None
        if self.sentences is not None:
            neighbours = self.sentence_graph(batch)
            vectors, sentence_attention = self.sentences(vectors, neighbours, sentences, n_graphs, documents)
        logits = self.classes(self.dropout(vectors))
        return Output(logits, vectors, attention, sentence_attention)

    def embed(self, batch: GraphBatch | PlannedBatch) -> Tensor | RepeatedRows | StackedRows:
        """H⁰: the vector of each word, then a zero row for each master node. ([models,] nodes, vector_width)."""
        masters = batch.n_graphs // batch.n_models if self.config.master_node else 0
        if isinstance(batch, PlannedBatch):
            return embed_planned(self.vectors, batch, masters, self.input_dropout)
        if batch.slabs is None:
            return self._rows(batch.words, masters, self.vectors, None)
        tables = self.vectors.unbind() if self.vectors.ndim == 3 else [self.vectors] * batch.n_models
        # The last row stands for words that only fill up.
        words = batch.words.masked_fill(batch.words < 0, self.config.n_words - 1).view(batch.n_models, -1)
        return StackedRows([self._rows(own, masters, tables[s], s) for s, own in enumerate(words)])

    def _rows(self, words: Tensor, masters: int, table: Tensor, model: int | None) -> RepeatedRows:
        found, index = distinct_rows(words, masters, table.shape[0])
        return RepeatedRows(self.input_dropout.rows(table, found, model), index)

    def sentence_graph(self, batch: GraphBatch | PlannedBatch) -> Neighbours:
        """The graph over the sentences of each document."""
        if self.config.variant == "path":
            return Path(batch)
        return Clique(batch, self.config.renormalise)


def read_groups(batch: GraphBatch | PlannedBatch) -> tuple[Groups, Groups]:
    """The words of each graph, and the graphs of each document."""
    words = sentences = words_of = sentences_of = None
    if isinstance(batch, PlannedBatch):
        words = batch.base, batch.size_in_slab
        sentences = batch.first_graph, batch.n_graphs_of_document
    elif batch.n_models == 1:
        words_of, sentences_of = batch.size, batch.graph_count
    return (
        Groups(lambda: batch.owner, batch.n_graphs, words, words_of),
        Groups(lambda: batch.graph_owner, batch.n_documents, sentences, sentences_of),
    )
