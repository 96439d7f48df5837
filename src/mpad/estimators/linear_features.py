"""Graphs of words → the numbers that a linear model takes: TF-IDF of words and pairs of words, mean word vectors."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from mpad.graph.packed import PackedGraphs
from mpad.graph.potentials import WeighedParts, edge_words, pair_keys, part_documents, weigh_parts

Doubles = NDArray[np.float64]
Rows = NDArray[np.int64]

_RARE = 2  # training documents that a pair of words must stand in
_ROWS = 1 << 16  # nodes whose features are worked with together
_MEAN_SCALE = 0.1  # spread of a mean vector's columns, beside scores of about 1


class Features:
    """Documents as a linear model takes them, and what was learnt to make them.

    `known` are the features of other documents, of which keys and idf are taken instead of learnt.
    """

    def __init__(
        self,
        graphs: PackedGraphs,
        documents: Rows,
        n_words: int,
        vectors: NDArray[np.floating],
        known: "Idf | None" = None,
    ) -> None:
        self.n_words, self.vectors = n_words, vectors
        self.known = learn_idf(graphs, documents, n_words) if known is None else known
        self.keys, self.idf, self.idf_new = self.known
        weighed = weigh_parts(graphs, self.keys, self.idf, self.idf_new)
        self.x = tfidf_matrix(weighed, len(graphs), len(self.idf))[documents]
        mean = _means(weighed, len(graphs), vectors, graphs.features)[documents]
        self.centre = mean.mean(0) if len(mean) else np.zeros(mean.shape[1])
        self.scale = float(mean.std()) / _MEAN_SCALE if mean.size and mean.any() else 1.0
        self.mean = (mean - self.centre) / self.scale  # (documents, width)


class Idf(NamedTuple):
    """Which words and pairs of words count, and how much each."""

    keys: Rows  # of the pairs of words that have a potential
    idf: NDArray[np.float32]  # of words, then of pairs
    idf_new: float  # of a new word


def learn_idf(graphs: PackedGraphs, documents: Rows, n_words: int, most_pairs: int | None = None) -> Idf:
    """Which words and pairs count in these documents; of pairs, the `most_pairs` that stand in most documents."""
    used = np.zeros(len(graphs), bool)
    used[documents] = True
    node_document, edge_document = part_documents(graphs)
    source, target = edge_words(graphs)
    words = _distinct(node_document, graphs.words.astype(np.int64), used[node_document] & (graphs.words < n_words))
    kept = used[edge_document] & (source < n_words) & (target < n_words)
    pairs = _distinct(edge_document, pair_keys(source, target, n_words), kept)
    keys, in_documents = np.unique(pairs, return_counts=True)
    keys, in_documents = keys[in_documents >= _RARE], in_documents[in_documents >= _RARE]
    if most_pairs is not None and len(keys) > most_pairs:
        kept = np.sort(np.argsort(-in_documents, kind="stable")[:most_pairs])
        keys, in_documents = keys[kept], in_documents[kept]
    frequency = np.concatenate([np.bincount(words, minlength=n_words), in_documents])
    idf = np.where(frequency > 0, np.log((1 + len(documents)) / (1 + frequency)) + 1, 0)  # as scikit-learn's
    return Idf(keys, idf.astype(np.float32), float(np.log(1 + len(documents)) + 1))


def _distinct(document: Rows, part: Rows, kept: NDArray[np.bool_]) -> Rows:
    """Parts, each once a document."""
    document, part = document[kept], part[kept]
    order = np.lexsort((part, document))
    document, part = document[order], part[order]
    first = np.ones(len(part), bool)
    first[1:] = (document[1:] != document[:-1]) | (part[1:] != part[:-1])
    return np.asarray(part[first])


def tfidf_matrix(weighed: WeighedParts, n: int, width: int) -> csr_matrix:
    """TF-IDF of each document: (documents, words and pairs)."""
    known = np.flatnonzero(weighed.node_value)
    document = np.concatenate([weighed.node_document[known], weighed.edge_document])
    row = np.concatenate([weighed.words[known], weighed.edge_row])
    value = np.concatenate([weighed.node_value[known], weighed.edge_value]).astype(np.float64)
    return csr_matrix((value, (document, row)), shape=(n, width))


def _means(
    weighed: WeighedParts, n: int, vectors: NDArray[np.floating], features: NDArray[np.floating] | None
) -> Doubles:
    """Mean word vector, or feature of nodes, of each document: (documents, width)."""
    if features is None:
        places = weighed.node_document, weighed.words
        shares = csr_matrix((weighed.node_share, places), shape=(n, len(vectors)))
        return np.asarray(shares @ vectors.astype(np.float32), np.float64)
    means = np.zeros((n, features.shape[1]))
    for first in range(0, len(features), _ROWS):  # never there as a whole in single precision
        part = slice(first, first + _ROWS)
        share, document = weighed.node_share[part], weighed.node_document[part]
        low = int(document[0])
        places = document - low, np.arange(len(share))
        shares = csr_matrix((share, places), shape=(int(document[-1]) - low + 1, len(share)))
        means[low : low + shares.shape[0]] += shares @ features[part].astype(np.float32)
    return means
