"""A document with its words, edges and sentences traced to the text, its parts, and their weights.

Units of weighing: a "word" is all occurrences of the word together, for which the network has one row; an "occurrence"
is one of them. A method that weighs words divides the weight evenly among the occurrences (in the hierarchical
variants, among those of the same sentence), so the weights of the occurrences add up to that of the word.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpad.errors import InputError
from mpad.graph.build import build_graphs
from mpad.graph.features import node_means, nodes_of_words
from mpad.graph.packed import PackedGraphs, with_edges
from mpad.inference.pipeline import Pipeline
from mpad.text.tokenizer import Tokens
from mpad.text.vocabulary import EncodedCorpus

WORD, OCCURRENCE, EDGE, SENTENCE = UNITS = ("word", "occurrence", "edge", "sentence")
WORD_UNITS = (WORD, OCCURRENCE)
Weights = NDArray[np.float64]


@dataclass(frozen=True)
class PartWeights:
    """Weights of the parts of a traced document, in the order of the document."""

    words: Weights  # (occurrences,)
    edges: Weights  # (edges,)
    sentences: Weights  # (sentences,)
    note: str = ""
    word_potentials: Weights | None = None  # (occurrences,), part of the word weights from the linear part
    edge_potentials: Weights | None = None  # (edges,)
    growth: float | None = None  # rise of the log-odds by all words together, if known
    pairs: NDArray[np.float64] | None = None  # (occurrences, occurrences), interactions, if known


@dataclass(frozen=True)
class TracedDocument:
    """Document of n words, and the model that reads it."""

    model: Pipeline
    text: str
    tokens: Tokens
    against: int | None = None  # column of the class that others are compared with; None: with all others together

    @cached_property
    def ids(self) -> NDArray[np.int32]:
        """Word id of each occurrence: (n,)."""
        return self._encoded[0]

    @cached_property
    def _encoded(self) -> tuple[NDArray[np.int32], tuple[tuple[int, ...], ...]]:
        return self.model.vocabulary.encode_words(self.tokens.words)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Known words, by occurrence: (n,); all of them if features come from a transformer."""
        if self.model.transformer is not None:
            return np.ones(len(self.ids), bool)
        return np.asarray(self.ids < len(self.model.vocabulary))

    @cached_property
    def sentence_of(self) -> NDArray[np.int64]:
        """Sentence of each occurrence: (n,), from 0 without gaps."""
        return np.array(self.tokens.sentences, np.int64)

    @property
    def n_sentences(self) -> int:
        """Number of sentences with at least one word."""
        return int(self.sentence_of[-1]) + 1 if len(self.sentence_of) else 0

    @cached_property
    def graph_of(self) -> NDArray[np.int64]:
        """Graph of each occurrence: its sentence in the hierarchical variants, else 0."""
        hierarchical = self.model.network.config.hierarchical
        return self.sentence_of if hierarchical else np.zeros(len(self.ids), np.int64)

    @cached_property
    def graphs(self) -> PackedGraphs:
        """Graphs of the whole document."""
        return self.build(np.ones((1, len(self.ids)), bool))

    def build(self, kept: NDArray[np.bool_]) -> PackedGraphs:
        """Build one version of the document per row of `kept`, (versions, n), with only the words kept there.

        Transformer features are always those of the whole text, so that a word's weight is what the network makes of
        its node, not how the transformer would read the text without it.
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
        """Transformer state of each occurrence in the whole text: (n, width); None without a transformer."""
        transformer, device = self.model.transformer, str(self.model.network.device)
        return None if transformer is None else transformer.word_states([self.text], [self.tokens.spans], device)

    @cached_property
    def node_of(self) -> NDArray[np.int64]:
        """Node of each occurrence in `graphs`: (n,)."""
        graphs = self.graphs
        node_of = np.zeros(len(self.ids), np.int64)
        for graph in np.unique(self.graph_of):
            start, end = graphs.node_start[graph : graph + 2]
            members = self.graph_of == graph
            node_of[members] = start + np.searchsorted(graphs.words[start:end], self.ids[members])
        return node_of

    @cached_property
    def edge_nodes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Source and target node of each edge in `graphs`."""
        graphs = self.graphs
        shift = np.repeat(graphs.node_start[:-1], np.diff(graphs.edge_start))
        return graphs.source + shift, graphs.target + shift

    @cached_property
    def edge_places(self) -> list[list[tuple[int, int]]]:
        """Occurrences of each edge in the text, as pairs of word occurrences (source, target)."""
        number = {pair: k for k, pair in enumerate(zip(*(nodes.tolist() for nodes in self.edge_nodes), strict=True))}
        places: list[list[tuple[int, int]]] = [[] for _ in number]
        nodes, graphs = self.node_of.tolist(), self.graph_of.tolist()
        for distance in range(1, self.model.graph_config.window):
            for before, after in zip(range(len(nodes)), range(distance, len(nodes)), strict=False):
                if graphs[before] == graphs[after] and nodes[before] != nodes[after]:
                    places[number[nodes[before], nodes[after]]].append((before, after))
        return places

    def log_odds(self, graphs: PackedGraphs, column: int) -> Weights:
        """Return the log-odds of the class for versions of the document: (versions,)."""
        logits = torch.from_numpy(self.model.answer(graphs).logits)
        return np.asarray(log_odds(logits, column, self.model.labels.multilabel, self.against))

    def spread_nodes(self, weights: Weights) -> Weights:
        """Divide the weight of each node evenly among its occurrences: (n,)."""
        return np.asarray((weights / np.bincount(self.node_of, minlength=len(weights)).clip(min=1))[self.node_of])

    def sum_sentences(self, words: Weights) -> Weights:
        """Return the sum of the word weights of each sentence: (sentences,)."""
        return np.bincount(self.sentence_of, words, minlength=self.n_sentences).astype(float)


def trace_document(
    model: Pipeline, text: str, without: Collection[int] = (), against: int | None = None
) -> TracedDocument:
    """Return the traced document; the word occurrences in `without` are removed first, as if never in the text."""
    tokens = model.tokenizer.trace(text, readable=not model.network.config.hierarchical)
    if not without:
        return TracedDocument(model, text, tokens, against)
    n = len(tokens.words)
    outside = [number for number in without if not 0 <= number < n]
    if outside:
        raise InputError(f"the document has {n} words, numbered from 0; there is no word {outside[0]}")
    kept = [number for number in range(n) if number not in set(without)]
    sentences = {number: k for k, number in enumerate(dict.fromkeys(tokens.sentences[k] for k in kept))}
    words, spans = [tokens.words[k] for k in kept], [tokens.spans[k] for k in kept]
    remaining = Tokens(words, spans, [sentences[tokens.sentences[k]] for k in kept])
    return TracedDocument(model, text, remaining, against)


def log_odds(logits: Tensor, column: int, multilabel: bool, against: int | None = None) -> Tensor:
    """Return log p / (1 − p) of the class from logits, without rounding errors for p close to 1: (documents,).

    Against another class: log p / q, q its probability.
    """
    logits = logits.double()
    if against is not None:
        return logits[:, column] - logits[:, against]
    if multilabel:
        return logits[:, column]
    others = torch.cat([logits[:, :column], logits[:, column + 1 :]], dim=1)
    return logits[:, column] - others.logsumexp(1)


def check_unit(unit: str, known: tuple[str, ...] = UNITS) -> None:
    """Raise InputError for an unknown unit."""
    if unit not in known:
        raise InputError(f"no unit '{unit}' here (known: {', '.join(known)})")


@dataclass(frozen=True)
class Parts:
    """Parts of one unit in a traced document."""

    document: TracedDocument
    unit: str

    def __len__(self) -> int:
        if self.unit == EDGE:
            return len(self.document.graphs.source)
        return int(self.of_occurrence.max()) + 1 if len(self.of_occurrence) else 0

    @cached_property
    def of_occurrence(self) -> NDArray[np.int64]:
        """Part of each occurrence, for units that contain words: (occurrences,)."""
        if self.unit == SENTENCE:
            return self.document.sentence_of
        ids = self.document.ids
        return np.unique(ids, return_inverse=True)[1] if self.unit == WORD else np.arange(len(ids))

    def keep(self, kept: NDArray[np.bool_]) -> PackedGraphs:
        """Build one version of the document per row of `kept`, (versions, parts), with only the parts kept there."""
        if self.unit == EDGE:
            return with_edges(self.document.graphs, kept)
        return self.document.build(kept[:, self.of_occurrence])

    def weights(self, weights: PartWeights) -> Weights:
        """Return the weight of each part: (parts,); that of a word is the sum over its occurrences."""
        if self.unit == EDGE:
            return weights.edges
        if self.unit == SENTENCE:
            return weights.sentences
        return np.bincount(self.of_occurrence, weights.words, minlength=len(self)).astype(np.float64)

    def spread(self, weights: Weights) -> Weights:
        """Divide the weight of each part evenly among its occurrences: (occurrences,)."""
        return np.asarray((weights / np.bincount(self.of_occurrence, minlength=len(self)))[self.of_occurrence])
