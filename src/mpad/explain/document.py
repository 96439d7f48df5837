"""One document taken apart for explaining: its words, edges and sentences, each with its place in the text."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.graph.build import build_graphs
from mpad.graph.features import node_means, nodes_of_words
from mpad.graph.packed import PackedGraphs
from mpad.pipeline.document_model import DocumentModel
from mpad.text.tokenizer import Tokens
from mpad.text.vocabulary import EncodedCorpus


@dataclass(frozen=True)
class TracedDocument:
    """A document of n words, and the model that reads it."""

    model: DocumentModel
    text: str
    tokens: Tokens

    @cached_property
    def ids(self) -> NDArray[np.int32]:
        """Word id of each occurrence: (n,)."""
        return self._encoded[0]

    @cached_property
    def _encoded(self) -> tuple[NDArray[np.int32], tuple[tuple[int, ...], ...]]:
        return self.model.vocabulary.encode_words(self.tokens.words)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Return whether the model knows the word of each occurrence: (n,); a transformer reads every word."""
        if self.model.transformer is not None:
            return np.ones(len(self.ids), bool)
        return np.asarray(self.ids < len(self.model.vocabulary))

    @cached_property
    def sentence_of(self) -> NDArray[np.int64]:
        """Sentence of each occurrence: (n,), from 0 without gaps."""
        return np.array(self.tokens.sentences, np.int64)

    @property
    def n_sentences(self) -> int:
        """Sentences that hold a word."""
        return int(self.sentence_of[-1]) + 1 if len(self.sentence_of) else 0

    @cached_property
    def graph_of(self) -> NDArray[np.int64]:
        """Graph of each occurrence: its sentence in the hierarchical variants, else 0."""
        hierarchical = self.model.network.config.hierarchical
        return self.sentence_of if hierarchical else np.zeros(len(self.ids), np.int64)

    @cached_property
    def graphs(self) -> PackedGraphs:
        """The graph or graphs of the whole document."""
        return self.build(np.ones((1, len(self.ids)), bool))

    def build(self, kept: NDArray[np.bool_]) -> PackedGraphs:
        """The document once for each row of `kept` (versions, n), with only the words kept there.

        Features that come from a transformer are those of the whole text: what is left is not read again, so that a
        word's weight is what the network makes of its node, not what the transformer would say without it.
        """
        versions, n = kept.shape
        n_graphs = int(self.graph_of[-1]) + 1 if n else 1
        lengths = np.zeros((versions, n_graphs), np.int64)
        for graph in range(n_graphs):
            lengths[:, graph] = kept[:, self.graph_of == graph].sum(axis=1)
        filled = lengths > 0
        filled[:, 0] |= ~filled.any(axis=1)  # a document without words keeps one empty graph
        corpus = EncodedCorpus(
            ids=np.broadcast_to(self.ids, kept.shape)[kept],
            sentence_start=np.concatenate([[0], np.cumsum(lengths[filled])]),
            document_start=np.concatenate([[0], np.cumsum(filled.sum(axis=1))]),
            new_words=self._encoded[1],
        )
        graphs = build_graphs(corpus, self.model.graph_config)
        if self._states is None:
            return graphs
        node_of, place = nodes_of_words(graphs, corpus), np.nonzero(kept)[1]
        features = node_means(node_of, self._states, len(graphs.words), place)
        return PackedGraphs.built(**{**vars(graphs), "features": features})

    @cached_property
    def _states(self) -> NDArray[np.float16] | None:
        """State of each occurrence in the whole text, where features come from a transformer: (n, width)."""
        transformer, device = self.model.transformer, str(self.model.device)
        return None if transformer is None else transformer.word_states([self.text], [self.tokens.spans], device)

    @cached_property
    def node_of(self) -> NDArray[np.int64]:
        """Node of each occurrence in `graphs`: (n,)."""
        graphs = self.graphs
        node_of = np.zeros(len(self.ids), np.int64)
        for graph in np.unique(self.graph_of):
            start, end = graphs.node_start[graph : graph + 2]
            here = self.graph_of == graph
            node_of[here] = start + np.searchsorted(graphs.words[start:end], self.ids[here])
        return node_of

    @cached_property
    def edge_nodes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Source and target node of each edge in `graphs`."""
        graphs = self.graphs
        shift = np.repeat(graphs.node_start[:-1], np.diff(graphs.edge_start))
        return graphs.source + shift, graphs.target + shift

    @cached_property
    def edge_places(self) -> list[list[tuple[int, int]]]:
        """For each edge, where it stands in the text: pairs of occurrences (source, target)."""
        number = {pair: k for k, pair in enumerate(zip(*(nodes.tolist() for nodes in self.edge_nodes), strict=True))}
        places: list[list[tuple[int, int]]] = [[] for _ in number]
        nodes, graphs = self.node_of.tolist(), self.graph_of.tolist()
        for distance in range(1, self.model.graph_config.window):
            for before, after in zip(range(len(nodes)), range(distance, len(nodes)), strict=False):
                if graphs[before] == graphs[after] and nodes[before] != nodes[after]:
                    places[number[nodes[before], nodes[after]]].append((before, after))
        return places


def trace_document(model: DocumentModel, text: str, without: Collection[int] = ()) -> TracedDocument:
    """Take a document apart; `without` some of its occurrences, by their number, as if the text had not had them."""
    tokens = model.tokenizer.trace(text, readable=not model.network.config.hierarchical)
    if not without:
        return TracedDocument(model, text, tokens)
    n = len(tokens.words)
    outside = [number for number in without if not 0 <= number < n]
    if outside:
        raise InputError(f"the document has {n} words, numbered from 0; there is no word {outside[0]}")
    kept = [number for number in range(n) if number not in set(without)]
    sentences = {number: k for k, number in enumerate(dict.fromkeys(tokens.sentences[k] for k in kept))}
    words, spans = [tokens.words[k] for k in kept], [tokens.spans[k] for k in kept]
    return TracedDocument(model, text, Tokens(words, spans, [sentences[tokens.sentences[k]] for k in kept]))
