"""The word graphs of a static batch: its nodes point into the edges of the whole corpus."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpad.kernels.static_batch import StaticBatch, StaticCorpus
from mpad.model import segment_sum


class StaticWordGraph(NamedTuple):
    """Word graphs of a static batch; indices are int32."""

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
    share: Tensor  # (n_nodes,), weight of the master in a word's mean
    master: bool
    renormalise: bool


_EDGES = "incoming", "source", "weight", "outgoing", "target", "weight_out", "share"


def word_graph(batch: StaticBatch, master: bool, mean: bool) -> StaticWordGraph:
    """Return the word graphs of a static batch."""
    edges = dict(zip(_EDGES, _corpus_edges(batch.corpus, master, mean), strict=True))
    places = batch.node, batch.owner_in_model, batch.base, batch.size_in_model
    return StaticWordGraph(*places, **edges, master=master, renormalise=mean)


def _corpus_edges(corpus: StaticCorpus, master: bool, mean: bool) -> tuple[Tensor, ...]:
    """Return the edges of a corpus by target and by source, divided by in-degrees; computed once per corpus."""
    if (master, mean) not in corpus.edges:
        incoming, source, weight = corpus.by_target
        outgoing, target, order = corpus.by_source
        n = corpus.words.shape[0]
        share = weight.new_ones(n)
        if mean:
            to = corpus.edge_targets()
            degree = segment_sum(weight, to, n)
            share = 1.0 / (degree + 1.0) if master else 1.0 / degree.clamp(min=torch.finfo(weight.dtype).tiny)
            weight = weight * share[to]
        corpus.edges[master, mean] = incoming, source, weight, outgoing, target, weight[order], share
    return corpus.edges[master, mean]
