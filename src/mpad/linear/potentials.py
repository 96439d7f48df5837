"""Potentials: the linear part of a model, as scores on the nodes and edges of word graphs; without torch.

Every word has a score for each class (a unary potential), and so has every pair of words that an edge joins (a pairwise
potential). Their TF-IDF-weighted sum is the score of a linear SVM; with a window of 2 the pairs are bigrams. A map of
the mean word vector is added. The model's logits are

    logits = S s + M m + b + w · network(document)

    s = Σ x_i p_i + p₀ over the words and pairs i with a potential p_i, x of unit length; a new word has the mean of
        its pieces'
    m = Σ x_i v_i / Σ x_i over the words i, v_i their vectors or node features
    x_i = tf_i · idf_i, tf = 1 + log(count in the graph)

Everything except the network is a sum over words and pairs, so the contribution of each to a class is exact.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.files.tensors import is_memory_mapped
from mpad.graph.packed import PackedGraphs
from mpad.text.vocabulary import SPARE_ROWS, piece_means

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
PREFIX = "potentials."  # of the tensors' names in a model folder
_ROWS = 1 << 14  # per chunk
INTEGERS = frozenset({PREFIX + "pairs"})  # tensors of integers


@dataclass(frozen=True)
class PotentialShape:
    """Number of words and pairs with a potential, and width of mean vectors (0: none)."""

    words: int
    pairs: int
    width: int

    def __post_init__(self) -> None:
        if min(self.words, self.pairs, self.width) < 0:
            raise InputError("a number of potentials is below 0")

    def tensor_shapes(self, n_classes: int, n_scores: int) -> dict[str, tuple[int, ...]]:
        """Return name and shape of every tensor."""
        shapes: dict[str, tuple[int, ...]] = {
            "pairs": (self.pairs, 2),
            "idf": (self.words + self.pairs,),
            "idf_new": (),
            "potential": (self.words + self.pairs, n_scores),
            "intercept": (n_scores,),
            "from_scores": (n_classes, n_classes),
            "from_mean": (n_classes, self.width),
            "bias": (n_classes,),
            "network": (),
        }
        return {PREFIX + name: shape for name, shape in shapes.items()}


@dataclass(frozen=True)
class Potentials:
    """The linear part of a model. Word numbers are those of its vocabulary, words of the training text first.

    If all words of the vocabulary have a potential, new words have the mean of their pieces'.
    """

    pairs: NDArray[np.int32]  # (pairs, 2), word ids in the order of the text; in the order of `pair_keys`
    idf: Floats  # (words + pairs,); 0 of a word without a potential
    idf_new: NDArray[Any]  # (), of a word in no training document
    potential: NDArray[np.floating]  # (words + pairs, classes; 1 column for two classes)
    intercept: Floats  # (classes or 1,), p₀
    from_scores: Floats  # (classes, classes), S
    from_mean: Floats  # (classes, width), M
    bias: Floats  # (classes,), b
    network: NDArray[Any]  # (), w
    vectors: NDArray[np.floating]  # (rows, width), the network's word vectors; width 0 if unused

    @property
    def shape(self) -> PotentialShape:
        """Numbers of words and pairs, and width of the mean vectors."""
        return PotentialShape(len(self.idf) - len(self.pairs), len(self.pairs), self.from_mean.shape[1])

    @property
    def has_new_words(self) -> bool:
        """True if all words of the vocabulary have a potential, so that new words have one by their pieces."""
        return self.shape.words == len(self.vectors) - SPARE_ROWS

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return all arrays except the word vectors, by their names in a model folder."""
        return {PREFIX + field.name: getattr(self, field.name) for field in fields(self) if field.name != "vectors"}

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]], vectors: NDArray[np.floating]) -> "Potentials | None":
        """Remove the linear part from a model's tensors and return it; None if there is none."""
        own = {name.removeprefix(PREFIX): tensors.pop(name) for name in list(tensors) if name.startswith(PREFIX)}
        if not own:
            return None
        potentials = cls(**own, vectors=vectors[:, : own["from_mean"].shape[1]])
        n, keys = potentials.shape.words, potentials._keys
        if len(keys) and (potentials.pairs.min() < 0 or potentials.pairs.max() >= n):
            raise InputError(f"a pair of words names one that has no potential: {n:,} have")
        if (keys[1:] <= keys[:-1]).any():
            raise InputError("pairs of words are not in their order")
        return potentials

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # cached tables are recomputed

    @cached_property
    def _keys(self) -> Ints:
        return pair_keys(self.pairs[:, 0], self.pairs[:, 1], self.shape.words)

    @cached_property
    def _word_means(self) -> Floats:
        """Contribution of each word's vector to each class, before weighting: (rows, classes)."""
        return self._map_vectors(self.vectors)

    def _map_vectors(self, vectors: NDArray[np.floating]) -> Floats:
        """Return M v of each row: (rows, classes)."""
        means = np.empty((len(vectors), len(self.from_mean)), np.float32)
        for first in range(0, len(means), _ROWS):  # in chunks: no second copy of all vectors in memory
            part = slice(first, first + _ROWS)
            means[part] = vectors[part].astype(np.float32) @ self.from_mean.T
        return means

    def _score_parts(self, potential: NDArray[np.floating]) -> Floats:
        return np.asarray(both_classes(potential.astype(np.float32), len(self.bias)) @ self.from_scores.T)

    @cached_property
    def _part_scores(self) -> Callable[[Ints], Floats]:
        """Function from part numbers to S p_i: from a table, or computed if the file is mapped, to save memory."""
        if is_memory_mapped(self.potential):
            return lambda rows: self._score_parts(self.potential.take(rows, axis=0))
        scores = self._score_parts(self.potential)  # (words + pairs, classes)
        return lambda rows: scores.take(rows, axis=0)

    @cached_property
    def constant(self) -> Floats:
        """Logits of the linear part for a document without words: (classes,)."""
        scores: Floats = both_classes(self.intercept[None], len(self.bias)) @ self.from_scores.T
        return np.asarray(scores[0] + self.bias)

    @np.errstate(invalid="ignore", over="ignore")  # overflow is reported by Labels, from the final logits
    def add_network(self, network_logits: Floats, linear: Floats) -> Floats:
        """Return the model's logits, given those of the network and of the linear part."""
        return np.asarray(self.network * network_logits + linear)

    @np.errstate(invalid="ignore", over="ignore")
    def logits(self, graphs: PackedGraphs) -> Floats:
        """Return the linear part's logits of each document: (documents, classes)."""
        weighed = self._weighed(graphs)
        nodes, edges = self._shares(weighed, graphs)
        total = np.zeros((len(graphs), len(self.bias)), np.float32)
        for document, share in ((weighed.node_document, nodes), (weighed.edge_document, edges)):
            _add_runs(total, document, share)
        return total + self.constant

    @np.errstate(invalid="ignore", over="ignore")
    def shares(self, graphs: PackedGraphs) -> tuple[Floats, Floats]:
        """Return the contribution of each node and edge to the logits: (nodes, classes), (edges, classes)."""
        weighed = self._weighed(graphs)
        nodes, known = self._shares(weighed, graphs)
        edges = np.zeros((len(graphs.source), len(self.bias)), np.float32)
        edges[weighed.edge] = known
        return nodes, edges

    def _weighed(self, graphs: PackedGraphs) -> "WeighedParts":
        pieces = graphs.new_words if self.has_new_words else ()
        return weigh_parts(graphs, self._keys, self.idf, self.idf_new, pieces)

    def _node_means(self, graphs: PackedGraphs) -> Floats:
        """Return the contribution of each node's vector or features, before weighting: (nodes, classes)."""
        if graphs.features is not None:
            return self._map_vectors(graphs.features[:, : self.from_mean.shape[1]])
        means = self._word_means
        nodes = means.take(graphs.words, axis=0)
        new, number = _new_nodes(graphs, len(means) - SPARE_ROWS)
        nodes[new] = piece_means(lambda ids: means[ids], graphs.new_words, nodes.shape[1])[number]
        return nodes

    def _shares(self, weighed: "WeighedParts", graphs: PackedGraphs) -> tuple[Floats, Floats]:
        nodes = self._node_means(graphs)
        nodes *= weighed.node_share[:, None]
        known = np.flatnonzero(weighed.words < self.shape.words)
        nodes[known] += self._part_scores(weighed.words[known]) * weighed.node_value[known][:, None]
        if self.has_new_words:
            new, number = _new_nodes(graphs, self.shape.words)
            scores = piece_means(self._part_scores, graphs.new_words, nodes.shape[1])
            nodes[new] += scores[number] * weighed.node_value[new][:, None]
        edges = self._part_scores(weighed.edge_row) * weighed.edge_value[:, None]
        return nodes, edges


@dataclass(frozen=True)
class WeighedParts:
    """Words and pairs of documents with their TF-IDF values, of unit length per document."""

    words: Ints  # (nodes,) word id of each
    node_document: Ints  # (nodes,)
    node_value: Floats  # (nodes,), 0 for a word without a potential
    node_share: Floats  # (nodes,), sums to 1 per document
    edge: Ints  # (known edges,), edges with a potential
    edge_document: Ints  # (known edges,)
    edge_row: Ints  # (known edges,), row in the potentials, after the words
    edge_value: Floats  # (known edges,)


def weigh_parts(
    graphs: PackedGraphs,
    keys: Ints,
    idf: Floats,
    idf_new: NDArray[Any] | float,
    new_words: Sequence[Sequence[int]] = (),
) -> WeighedParts:
    """Find the words and pairs with a potential, and compute their TF-IDF values.

    `keys` are sorted `pair_keys`. `new_words` have a potential by their pieces; their ids follow the last word.
    """
    n_words, n = len(idf) - len(keys), len(graphs)
    node_document, edge_document = part_documents(graphs)
    words = graphs.words.astype(np.int64)
    own = idf.take(np.minimum(words, n_words - 1)) if n_words else np.zeros(len(words), np.float32)
    known = (words < n_words) & (own > 0)
    rarity = np.where(known, own, idf_new)
    node_value = (sublinear(1 if graphs.count is None else graphs.count) * rarity).astype(np.float32)
    node_share = node_value / np.maximum(np.bincount(node_document, node_value, n), 1e-9)[node_document]
    if len(new_words):
        new, number = _new_nodes(graphs, n_words)
        known[new] = np.array([len(pieces) > 0 for pieces in new_words])[number]
    node_value = np.where(known, node_value, np.float32(0))
    source, target = edge_words(graphs)
    row = keys.searchsorted(pair_keys(source, target, n_words)) if len(keys) else np.zeros(len(source), np.int64)
    found = (source < n_words) & (target < n_words) & (row < len(keys))
    found[found] = keys[row[found]] == pair_keys(source[found], target[found], n_words)
    edge = np.flatnonzero(found)
    edge_document, edge_row = edge_document[edge], row[edge] + n_words
    edge_value = sublinear(graphs.weight[edge]) * idf.take(edge_row)
    length = np.sqrt(np.bincount(node_document, node_value**2, n) + np.bincount(edge_document, edge_value**2, n))
    length = np.maximum(length, 1e-9).astype(np.float32)
    return WeighedParts(
        words,
        node_document,
        node_value / length[node_document],
        node_share.astype(np.float32),
        edge,
        edge_document,
        edge_row,
        edge_value / length[edge_document],
    )


def _new_nodes(graphs: PackedGraphs, first: int) -> tuple[Ints, Ints]:
    """Return the nodes of new words, whose ids begin at `first`, and the number of each new word."""
    number = graphs.words.astype(np.int64) - first
    nodes = np.flatnonzero((number >= 0) & (number < len(graphs.new_words)))
    return nodes, number[nodes]


def both_classes(scores: Floats, n_classes: int) -> Floats:
    """Return the scores of each class, expanding the single score of two classes: (…, classes)."""
    return np.concatenate([-scores, scores], axis=-1) if scores.shape[-1] == 1 and n_classes == 2 else scores


def pair_keys(first: NDArray[Any], second: NDArray[Any], n_words: int) -> Ints:
    """Return one number per pair of words."""
    return np.asarray(first.astype(np.int64) * n_words + second)


def sublinear(counts: NDArray[Any] | int) -> Floats:
    """Return 1 + log(count); weights below 1 (of distant words) are unchanged."""
    return np.where(counts < 1, counts, 1 + np.log(np.maximum(counts, 1))).astype(np.float32)


def count_words(graphs: PackedGraphs, n_known: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the words of each document, and those with ids from `n_known` on: (documents,) each."""
    count = np.ones(len(graphs.words), np.int64) if graphs.count is None else graphs.count
    document = part_documents(graphs)[0]
    each, new = (np.bincount(document, own, len(graphs)) for own in (count, count * (graphs.words >= n_known)))
    return each.astype(np.int64), new.astype(np.int64)


def part_documents(graphs: PackedGraphs) -> tuple[Ints, Ints]:
    """Return the document of each node and of each edge."""
    owner = np.repeat(np.arange(len(graphs)), np.diff(graphs.document_start))
    return np.repeat(owner, np.diff(graphs.node_start)), np.repeat(owner, np.diff(graphs.edge_start))


def edge_words(graphs: PackedGraphs) -> tuple[Ints, Ints]:
    """Return the word ids of each edge's source and target."""
    shift = np.repeat(graphs.node_start[:-1], np.diff(graphs.edge_start))
    words = graphs.words.astype(np.int64)
    return words.take(graphs.source + shift), words.take(graphs.target + shift)


def _add_runs(total: Floats, document: Ints, share: Floats) -> None:
    """Add each document's shares, which are consecutive, to its total."""
    if len(document):
        first = np.flatnonzero(np.concatenate([[True], document[1:] != document[:-1]]))
        total[document[first]] += np.add.reduceat(share, first, axis=0)
