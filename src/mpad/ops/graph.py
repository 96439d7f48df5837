"""Who sends messages to whom, as operators take it: tensors and numbers.

The graph of words is a list of edges with weights that are already divided by in-degrees; master nodes are not stored
as edges. The graph over sentences needs no edges at all.
"""

from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from mpad.graph.batch import GraphBatch
from mpad.graph.static_batch import StaticBatch, StaticCorpus
from mpad.ops.dispatch import operator, structure


@structure
class WordGraph(NamedTuple):
    """Graphs of words. Rows are the words of a batch and then, with a master node, one row a graph.

    Stacked models have their graphs side by side: rows are (models, rows, width), and nodes and graphs are counted over
    all models.
    """

    owner: Tensor  # (n_words,) int64, graph of each word
    size: Tensor  # (n_graphs,) int64, words of each graph
    source: Tensor  # (n_edges,) int64
    target: Tensor  # (n_edges,) int64, sorted
    weight: Tensor  # (n_edges,), divided by the target's in-degree
    share: Tensor  # (n_words,), weight of the master's row in a word's mean
    part: Tensor  # (n_graphs,), weight of a word's row in its master's mean
    mask: Tensor | None  # (models, rows, 1): 0 for rows that are padding; None where there is none
    master: bool
    models: int


@structure
class StaticWordGraph(NamedTuple):
    """Graphs of words of a static batch, whose nodes point into the edges of the whole corpus; int32."""

    node: Tensor  # (models, words), node of the corpus, -1 for padding
    owner: Tensor  # (models, words), graph
    base: Tensor  # (models, graphs), first word
    size: Tensor  # (models, graphs), words
    incoming: Tensor  # (n_nodes + 1,), first edge into each node of the corpus
    source: Tensor  # (n_edges,), node of the edge's graph
    weight: Tensor  # (n_edges,)
    outgoing: Tensor  # (n_nodes + 1,), the same edges by their source
    target: Tensor  # (n_edges,)
    weight_out: Tensor  # (n_edges,)
    share: Tensor  # (n_nodes,)
    mask: Tensor | None  # (models, rows, 1)
    master: bool
    renormalise: bool

    def edges(self) -> WordGraph:
        """The same graphs as a list of edges; its length depends on the data."""
        models, n = self.node.shape
        real = self.node >= 0
        node = self.node.clamp(min=0).long()
        count = torch.where(real, (self.incoming[1:] - self.incoming[:-1])[node], 0).flatten()
        target = torch.repeat_interleave(count)
        before = count.cumsum(0) - count
        edge = (
            torch.arange(len(target), device=node.device) - before[target] + self.incoming[:-1][node].flatten()[target]
        )
        graph = torch.arange(models, device=node.device)[:, None]
        base = (self.base.gather(1, self.owner.long()) + graph * n).flatten()
        size = self.size.flatten().long()
        dummy = self.base.shape[1] - 1  # the last graph of a model owns its padding, where nothing is sent
        part = 1.0 / size.clamp(min=1) if self.renormalise else torch.ones_like(size, dtype=self.weight.dtype)
        part = part.to(self.weight.dtype).view(models, -1)
        part[:, dummy] = 0.0
        return WordGraph(
            owner=(self.owner + graph * self.base.shape[1]).flatten().long(),
            size=size,
            source=base[target] + self.source[edge],
            target=target,
            weight=self.weight[edge],
            share=torch.where(real, self.share[node], 0.0).flatten(),
            part=part.flatten(),
            mask=self.mask,
            master=self.master,
            models=models,
        )


@structure
class SentenceGraph(NamedTuple):
    """A graph over the sentences of each document: a clique, or a path from the first to the last."""

    owner: Tensor  # (n_sentences,) int64, document of each sentence, over all models
    sizes: Tensor  # (n_documents,) int64, sentences of each document
    mask: Tensor | None  # (models, sentences, 1)
    path: bool
    renormalise: bool
    models: int


Graph: TypeAlias = WordGraph | StaticWordGraph | SentenceGraph


@structure
class Segments(NamedTuple):
    """Which rows belong together: runs of rows, in their order."""

    owner: Tensor  # (n_rows,) int64 over all models; of a static batch (models, n_rows) int32 within each
    size: Tensor | None  # (n,) int64, where rows are runs; of a static batch (models, n) int32
    base: Tensor | None  # of a static batch: first row of each, (models, n) int32
    mask: Tensor | None  # (models, n, 1): 0 for those that are padding
    n: int  # over all models
    models: int

    def flat_owner(self) -> Tensor:
        """(n_rows,) int64, counted over all models."""
        if self.owner.ndim == 1:
            return self.owner
        model = torch.arange(self.models, device=self.owner.device)[:, None]
        return (self.owner + model * (self.n // self.models)).flatten().long()


def word_graph(
    batch: GraphBatch | StaticBatch, master: bool, renormalise: bool, masked: bool, edge_scale: Tensor | None = None
) -> Graph:
    """The graph of words of a batch; with `masked` it tells which rows are padding, as norms over rows must know.

    `edge_scale` (n_edges,) scales what an edge carries, in-degrees as they are.
    """
    mask = None
    if batch.padding is not None and masked:
        words, graphs = batch.padding.words, batch.padding.graphs
        mask = torch.cat([words, graphs], dim=1) if master else words
    if isinstance(batch, StaticBatch):
        if edge_scale is not None:
            raise ValueError(
                "edges of a static batch belong to the whole corpus and cannot be scaled: use a GraphBatch"
            )
        places: Any = batch.node, batch.owner_in_model, batch.base, batch.size_in_model
        fields = *places, *_corpus_edges(batch.corpus, master, renormalise), mask, master, renormalise
        return StaticWordGraph(*fields)
    n = batch.words.shape[0]
    if renormalise:
        weight, share, part = mean_weights(batch.weight, batch.target, batch.size, n, master)
    else:
        weight, share, part = batch.weight, batch.weight.new_ones(n), batch.weight.new_ones(batch.n_graphs)
    if edge_scale is not None:
        weight = weight * edge_scale
    ends = batch.owner, batch.size, batch.source, batch.target
    return WordGraph(*ends, weight, share, part, mask, master, batch.n_models)


def _corpus_edges(corpus: StaticCorpus, master: bool, renormalise: bool) -> tuple[Tensor, ...]:
    """The edges of a corpus by their target and by their source, as StaticWordGraph has them."""
    if (master, renormalise) not in corpus.edges:
        incoming, source, weight = corpus.by_target
        outgoing, target, order = corpus.by_source
        n = corpus.words.shape[0]
        share = weight.new_ones(n)
        if renormalise:
            weight, share, _ = mean_weights(weight, *corpus.ends(), n, master)
        corpus.edges[master, renormalise] = incoming, source, weight, outgoing, target, weight[order], share
    return corpus.edges[master, renormalise]


@operator(cpu="mpad.ops.cpu.message_passing:mean_weights")
def mean_weights(weight: Tensor, target: Tensor, size: Tensor, n_words: int, master: bool) -> list[Tensor]:
    """D⁻¹: weights of edges over their target's in-degree, with what that leaves to the master; a master's 1/|G|."""
    degree = weight.new_zeros(n_words).index_add(0, target, weight)
    share = 1.0 / (degree + 1.0) if master else 1.0 / degree.clamp(min=torch.finfo(weight.dtype).tiny)
    return [weight * share.index_select(0, target), share, 1.0 / size.clamp(min=1).to(weight.dtype)]


def sentence_graph(batch: GraphBatch | StaticBatch, path: bool, renormalise: bool) -> SentenceGraph:
    """The graph over the sentences of each document of a batch."""
    mask = None if batch.padding is None else batch.padding.graphs
    return SentenceGraph(batch.graph_owner, batch.graph_count, mask, path, renormalise, batch.n_models)


def batch_segments(batch: GraphBatch | StaticBatch) -> tuple[Segments, Segments]:
    """The words of each graph, and the graphs of each document."""
    padding, models = batch.padding, batch.n_models
    graphs, documents = (None, None) if padding is None else (padding.graphs, padding.documents)
    if isinstance(batch, StaticBatch):
        return (
            Segments(batch.owner_in_model, batch.size_in_model, batch.base, graphs, batch.n_graphs, models),
            Segments(
                batch.document_of_graph,
                batch.n_graphs_of_document,
                batch.first_graph,
                documents,
                batch.n_documents,
                models,
            ),
        )
    size, count = (batch.size, batch.graph_count) if models == 1 else (None, None)  # padding stands between models
    return (
        Segments(batch.owner, size, None, graphs, batch.n_graphs, models),
        Segments(batch.graph_owner, count, None, documents, batch.n_documents, models),
    )
