"""Features of the linear model: TF-IDF of words, word pairs and character n-grams, and mean word vectors.

The value of character n-gram g in a document is Σ x_i z_ig over its words i, where z_i are its n-grams, of unit length.
The score of a word is therefore p_i + Σ z_ig p_g. This sum is stored as the word's potential, also for
vocabulary words that no training document has, so a saved model has no n-grams.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer

from mpad.graph.packed import PackedGraphs
from mpad.linear.potentials import WeighedParts, edge_words, pair_keys, part_documents, weigh_parts
from mpad.text.vocabulary import CONTINUED

Doubles = NDArray[np.float64]
Rows = NDArray[np.int64]

_RARE = 2  # least training documents with a word pair; least words with a character n-gram
_LETTERS = 5  # length of n-grams; a word's beginning and end count as letters
_ROWS = 1 << 16  # nodes per chunk
_MEAN_SCALE = 0.1  # spread of a mean vector's columns, compared with scores of about 1


class Features:
    """Documents as inputs of a linear model, and the statistics behind them.

    The statistics (IDF, known pairs, center and scale of the mean vectors) come from the places `learn_from` among
    `documents`, by default all, or from `known`. Character n-grams are used if `words` has `n_words` words.
    """

    def __init__(
        self,
        graphs: PackedGraphs,
        documents: Rows,
        n_words: int,
        vectors: NDArray[np.floating],
        words: Sequence[str] = (),
        known: "Known | None" = None,
        learn_from: Rows | None = None,
    ) -> None:
        self.n_words, self.vectors = n_words, vectors
        used = np.arange(len(documents)) if learn_from is None else learn_from
        self.known = learn_known(graphs, documents[used], n_words, words) if known is None else known
        weighed = weigh_parts(graphs, self.known.keys, self.known.idf, self.known.idf_new)
        self.x = self.known.matrix(weighed, len(graphs))[documents]
        mean = _mean_vectors(weighed, len(graphs), vectors, graphs.features)[documents]
        basis = mean[used]
        self.center = basis.mean(0) if len(basis) else np.zeros(mean.shape[1])
        self.scale = float(basis.std()) / _MEAN_SCALE if basis.size and basis.any() else 1.0
        self.mean = (mean - self.center) / self.scale  # (documents, width)


class Known(NamedTuple):
    """The words and pairs with potentials, their IDF, and the character n-grams of the words."""

    keys: Rows  # of word pairs with a potential
    idf: NDArray[np.float32]  # of words, then of pairs
    idf_new: float  # of a new word
    ngrams: csr_matrix | None = None  # (words, character n-grams)

    def matrix(self, weighed: WeighedParts, n: int) -> csr_matrix:
        """Return the TF-IDF of each document: (documents, words, pairs and character n-grams)."""
        known = np.flatnonzero((weighed.node_value > 0) & (weighed.words < len(self.idf) - len(self.keys)))
        document = np.concatenate([weighed.node_document[known], weighed.edge_document])
        row = np.concatenate([weighed.words[known], weighed.edge_row])
        value = np.concatenate([weighed.node_value[known], weighed.edge_value]).astype(np.float64)
        x = csr_matrix((value, (document, row)), shape=(n, len(self.idf)))
        if self.ngrams is None:
            return x
        return hstack([x, x[:, : self.ngrams.shape[0]] @ self.ngrams]).tocsr()

    def merge_ngrams(self, weight: Doubles) -> Doubles:
        """Add a linear model's weights of character n-grams to the words that have them: (rows, words and pairs)."""
        own = weight[:, : len(self.idf)].copy()
        if self.ngrams is not None:
            own[:, : self.ngrams.shape[0]] += (self.ngrams @ weight[:, len(self.idf) :].T).T
        return own


def learn_known(
    graphs: PackedGraphs, documents: Rows, n_words: int, words: Sequence[str] = (), most_pairs: int | None = None
) -> Known:
    """Find the words and pairs of these documents; keep the `most_pairs` pairs of most documents."""
    used = np.zeros(len(graphs), bool)
    used[documents] = True
    node_document, edge_document = part_documents(graphs)
    source, target = edge_words(graphs)
    nodes = _distinct_parts(
        node_document, graphs.words.astype(np.int64), used[node_document] & (graphs.words < n_words)
    )
    kept = used[edge_document] & (source < n_words) & (target < n_words)
    pairs = _distinct_parts(edge_document, pair_keys(source, target, n_words), kept)
    keys, in_documents = np.unique(pairs, return_counts=True)
    keys, in_documents = keys[in_documents >= _RARE], in_documents[in_documents >= _RARE]
    if most_pairs is not None and len(keys) > most_pairs:
        kept = np.sort(np.argsort(-in_documents, kind="stable")[:most_pairs])
        keys, in_documents = keys[kept], in_documents[kept]
    frequency = np.concatenate([np.bincount(nodes, minlength=n_words), in_documents])
    idf = np.log((1 + len(documents)) / (1 + frequency)) + 1  # as scikit-learn's
    ngrams = _ngram_matrix(words, frequency[:n_words] > 0) if len(words) else None
    if ngrams is None:
        idf[frequency == 0] = 0  # without n-grams, a word of no document has no score
    return Known(keys, idf.astype(np.float32), float(np.log(1 + len(documents)) + 1), ngrams)


def _ngram_matrix(words: Sequence[str], trained: NDArray[np.bool_]) -> csr_matrix | None:
    """Return the character n-grams of each word, weighted by IDF among `trained` words: (words, n-grams)."""
    vectorizer = TfidfVectorizer(analyzer=_ngrams, binary=True, min_df=_RARE)
    try:
        vectorizer.fit([words[number] for number in np.flatnonzero(trained).tolist()])
    except ValueError:  # no two words share an n-gram
        return None
    return vectorizer.transform(words)


def _ngrams(word: str) -> list[str]:
    """Return the character n-grams of a word; a piece inside a word has no beginning."""
    padded = word.removeprefix(CONTINUED) + " " if word.startswith(CONTINUED) else f" {word} "
    return [padded[k : k + _LETTERS] for k in range(max(1, len(padded) - _LETTERS + 1))]


def _distinct_parts(document: Rows, part: Rows, kept: NDArray[np.bool_]) -> Rows:
    """Return the parts, each once per document."""
    document, part = document[kept], part[kept]
    order = np.lexsort((part, document))
    document, part = document[order], part[order]
    first = np.ones(len(part), bool)
    first[1:] = (document[1:] != document[:-1]) | (part[1:] != part[:-1])
    return np.asarray(part[first])


def _mean_vectors(
    weighed: WeighedParts, n: int, vectors: NDArray[np.floating], features: NDArray[np.floating] | None
) -> Doubles:
    """Return the mean word vector, or mean node feature, of each document: (documents, width)."""
    if features is None:
        places = weighed.node_document, weighed.words
        shares = csr_matrix((weighed.node_share, places), shape=(n, len(vectors)))
        return np.asarray(shares @ vectors.astype(np.float32), np.float64)
    means = np.zeros((n, features.shape[1]))
    for first in range(0, len(features), _ROWS):  # in chunks: all features in single precision may not fit into memory
        part = slice(first, first + _ROWS)
        share, document = weighed.node_share[part], weighed.node_document[part]
        low = int(document[0])
        places = document - low, np.arange(len(share))
        shares = csr_matrix((share, places), shape=(int(document[-1]) - low + 1, len(share)))
        means[low : low + shares.shape[0]] += shares @ features[part].astype(np.float32)
    return means
