"""Graphs of words → the numbers that a linear model takes: TF-IDF of words and pairs of words, mean word vectors."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from mpad.graph.packed import PackedGraphs
from mpad.graph.potentials import WeighedParts, edge_words, pair_keys, part_documents, weigh_parts

Doubles = NDArray[np.float64]
Rows = NDArray[np.int64]

_RARE = 2  # training documents that a pair of words must stand in
_MEAN_SCALE = 0.1  # spread of a mean vector's columns, beside scores of about 1


class Features:
    """Documents as a linear model takes them, and what was learnt to make them."""

    def __init__(self, graphs: PackedGraphs, documents: Rows, n_words: int, vectors: NDArray[np.floating]) -> None:
        self.n_words, self.vectors = n_words, vectors
        self.keys, self.idf, self.idf_new = _learn_idf(graphs, documents, n_words)
        weighed = weigh_parts(graphs, self.keys, self.idf, self.idf_new)
        self.x = _matrix(weighed, len(graphs), len(self.idf))[documents]
        mean = _means(weighed, len(graphs), vectors)[documents]
        self.centre = mean.mean(0)
        self.scale = float(mean.std()) / _MEAN_SCALE if mean.size and mean.any() else 1.0
        self.mean = (mean - self.centre) / self.scale  # (documents, width)


def _learn_idf(graphs: PackedGraphs, documents: Rows, n_words: int) -> tuple[Rows, NDArray[np.float32], float]:
    """Keys of the pairs of words that have a potential; idf of words, then of pairs; idf of a new word."""
    used = np.zeros(len(graphs), bool)
    used[documents] = True
    node_document, edge_document = part_documents(graphs)
    source, target = edge_words(graphs)
    words = _distinct(node_document, graphs.words.astype(np.int64), used[node_document] & (graphs.words < n_words))
    kept = used[edge_document] & (source < n_words) & (target < n_words)
    pairs = _distinct(edge_document, pair_keys(source, target, n_words), kept)
    keys, in_documents = np.unique(pairs, return_counts=True)
    keys, in_documents = keys[in_documents >= _RARE], in_documents[in_documents >= _RARE]
    frequency = np.concatenate([np.bincount(words, minlength=n_words), in_documents])
    idf = np.where(frequency > 0, np.log((1 + len(documents)) / (1 + frequency)) + 1, 0)  # as scikit-learn's
    return keys, idf.astype(np.float32), float(np.log(1 + len(documents)) + 1)


def _distinct(document: Rows, part: Rows, kept: NDArray[np.bool_]) -> Rows:
    """Parts, each once a document."""
    document, part = document[kept], part[kept]
    order = np.lexsort((part, document))
    document, part = document[order], part[order]
    first = np.ones(len(part), bool)
    first[1:] = (document[1:] != document[:-1]) | (part[1:] != part[:-1])
    return np.asarray(part[first])


def _matrix(weighed: WeighedParts, n: int, width: int) -> csr_matrix:
    """TF-IDF of each document: (documents, words and pairs)."""
    known = np.flatnonzero(weighed.node_value)
    document = np.concatenate([weighed.node_document[known], weighed.edge_document])
    row = np.concatenate([weighed.words[known], weighed.edge_row])
    value = np.concatenate([weighed.node_value[known], weighed.edge_value]).astype(np.float64)
    return csr_matrix((value, (document, row)), shape=(n, width))


def _means(weighed: WeighedParts, n: int, vectors: NDArray[np.floating]) -> Doubles:
    """Mean word vector of each document: (documents, width)."""
    places = weighed.node_document, weighed.words
    shares = csr_matrix((weighed.node_share, places), shape=(n, len(vectors)))
    return np.asarray(shares @ vectors.astype(np.float32), np.float64)
