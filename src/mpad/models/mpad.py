"""MPAD: all four variants, every ablation and every preset, by configuration."""

import torch
from torch import Tensor, nn

from mpad import ops
from mpad.graph.batch import GraphBatch
from mpad.graph.static_batch import StaticBatch
from mpad.models.network import Network, Output
from mpad.nn.config import MPADConfig
from mpad.nn.dropout import Dropout, RowDropout
from mpad.nn.embedding import WordRows
from mpad.nn.linear import Linear
from mpad.nn.message_passing import MessagePassing
from mpad.nn.readout import Readout
from mpad.ops import Graph, Segments, Words


class GraphEncoder(nn.Module):
    """Message passing over one kind of graph, and readout of every round (eq. 8, "multi-readout").

    H^t = MessagePassing(H^(t−1))    vector = Readout(H¹ … H^T)

    H⁰: ([models,] nodes, in_width) → vectors: ([models,] graphs, hidden). Without rounds, H⁰ itself is read out.
    """

    def __init__(self, config: MPADConfig, in_width: int, rounds: int, master: bool, first: bool) -> None:
        super().__init__()
        self.rounds = nn.ModuleList(
            MessagePassing(config, config.hidden if t else in_width, first and t == 0) for t in range(rounds)
        )
        self.readout = Readout(config, max(rounds, 1), master)

    def forward(self, h: Tensor | WordRows, graph: Graph | None, segments: Segments) -> tuple[Tensor, Tensor]:
        """H⁰ → vectors, and the attention of each round: (rounds, nodes that are not masters)."""
        states = [] if self.rounds else [h]
        for message_passing in self.rounds:
            h = message_passing(h, graph)
            states.append(h)
        vectors, attention = self.readout(states, segments)
        return vectors, attention


class MPAD(Network):
    """Message passing attention network: a batch of graphs of words → logits.

    words   H⁰ = word vectors, the master's row zero → GraphEncoder over words → a vector per graph
    mpad            a graph is a document: that vector is the document's
    sentence-att    a graph is a sentence: attention over the sentence vectors
    clique, path    a second GraphEncoder over a graph of sentences, without a master node
    then    dropout, and one linear map to the classes

    The readout of both encoders has a batch norm. The paper has one "after the skip connection", which sentences have
    not, and the authors' code has none over sentences; here sentences have one too, in every preset (docs/LOG.md says
    why).
    """

    stackable = True
    config: MPADConfig

    def __init__(self, config: MPADConfig) -> None:
        super().__init__(config)
        self.by_sentence = config.hierarchical
        # The paper says that it uses dropout, not where; here is where the authors' code has it too.
        self.input_dropout = RowDropout(config.dropout, layer=0)
        self.words = GraphEncoder(config, config.vector_width, config.steps, config.master_node, first=True)
        self.sentences = None
        if config.hierarchical:
            rounds = 0 if config.variant == "sentence-att" else config.steps
            self.sentences = GraphEncoder(config, config.hidden, rounds, master=False, first=False)
        self.dropout = Dropout(config.dropout, layer=1)
        self.classes = Linear(config.hidden, config.n_classes)

    def forward(
        self, batch: GraphBatch | StaticBatch, edge_scale: Tensor | None = None, vectors: Tensor | None = None
    ) -> Output:
        """Classify a batch: logits ([models,] documents, classes).

        `edge_scale` scales what each edge carries; `vectors` are read in place of the batch's rows, or the network's.
        """
        config, (words, sentences) = self.config, ops.batch_segments(batch)
        graph = ops.word_graph(batch, config.master_node, config.renormalise, config.mlp_norm, edge_scale)
        vectors, attention = self.words(self.embed(batch, vectors), graph, words)
        sentence_attention = None
        if self.sentences is not None:
            graph = ops.sentence_graph(batch, config.variant == "path", config.renormalise)
            vectors, sentence_attention = self.sentences(vectors, graph, sentences)
        logits = self.classes(self.dropout(vectors))
        return Output(logits, vectors, attention, sentence_attention)

    @torch.no_grad()
    def scale_logits(self, factor: float) -> None:
        """Multiply what the network says from now on: its last layer's weight and bias."""
        self.classes.weight.mul_(factor)
        self.classes.bias.mul_(factor)

    def embed(self, batch: GraphBatch | StaticBatch, vectors: Tensor | None = None) -> WordRows:
        """H⁰: the vector of each word, then a zero row for each master node. ([models,] nodes, vector_width)."""
        masters = batch.n_graphs // batch.n_models if self.config.master_node else 0
        if isinstance(batch, StaticBatch):
            words = Words(batch.corpus.words, batch.node, masters)
        else:
            index = batch.words if batch.padding is None else batch.words.view(batch.n_models, -1)
            words = Words(index, None, masters)
        own = self.vectors if batch.rows is None else batch.rows
        return WordRows(own if vectors is None else vectors, words, self.input_dropout.state())
