"""Graphs of words → the numbers that a linear model takes: TF-IDF of words and pairs of words, mean word vectors.

Words lend their weight to what they are spelt with: a document's n-grams of letters weigh Σ x_i z_ig, over its words i,
z the n-grams of a word, of unit length. What a linear model learns of them is a sum over words, p_i + Σ z_ig p_g: it is
added to the words' own potentials, and gives words one that no training document has. So a model keeps no n-grams.
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

_RARE = 2  # training documents that a pair of words must stand in; words that must share an n-gram of letters
_LETTERS = 5  # of an n-gram; a word's beginning and end are letters, too
_ROWS = 1 << 16  # nodes whose features are worked with together
_MEAN_SCALE = 0.1  # spread of a mean vector's columns, beside scores of about 1


class Features:
    """Documents as a linear model takes them, and the statistics behind them.

    The statistics (IDF, known pairs, centre and scale of the mean vectors) come from the places `learn_from` among
    `documents`, by default all, or from `known`. Character n-grams are used if `words` has one word for each number
    below `n_words`.
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
        mean = _means(weighed, len(graphs), vectors, graphs.features)[documents]
        basis = mean[used]
        self.centre = basis.mean(0) if len(basis) else np.zeros(mean.shape[1])
        self.scale = float(basis.std()) / _MEAN_SCALE if basis.size and basis.any() else 1.0
        self.mean = (mean - self.centre) / self.scale  # (documents, width)


class Known(NamedTuple):
    """Which words and pairs of words count, and how much each; what words are spelt with."""

    keys: Rows  # of the pairs of words that have a potential
    idf: NDArray[np.float32]  # of words, then of pairs
    idf_new: float  # of a new word
    letters: csr_matrix | None = None  # (words, n-grams of letters)

    def matrix(self, weighed: WeighedParts, n: int) -> csr_matrix:
        """TF-IDF of each document: (documents, words and pairs, and n-grams of letters)."""
        known = np.flatnonzero((weighed.node_value > 0) & (weighed.words < len(self.idf) - len(self.keys)))
        document = np.concatenate([weighed.node_document[known], weighed.edge_document])
        row = np.concatenate([weighed.words[known], weighed.edge_row])
        value = np.concatenate([weighed.node_value[known], weighed.edge_value]).astype(np.float64)
        x = csr_matrix((value, (document, row)), shape=(n, len(self.idf)))
        if self.letters is None:
            return x
        return hstack([x, x[:, : self.letters.shape[0]] @ self.letters]).tocsr()

    def by_part(self, weight: Doubles) -> Doubles:
        """A linear model's weights, those of letters added to the words that have them: (rows, words and pairs)."""
        own = weight[:, : len(self.idf)].copy()
        if self.letters is not None:
            own[:, : self.letters.shape[0]] += (self.letters @ weight[:, len(self.idf) :].T).T
        return own


def learn_known(
    graphs: PackedGraphs, documents: Rows, n_words: int, words: Sequence[str] = (), most_pairs: int | None = None
) -> Known:
    """Which words and pairs count in these documents; of pairs, the `most_pairs` that stand in most documents."""
    used = np.zeros(len(graphs), bool)
    used[documents] = True
    node_document, edge_document = part_documents(graphs)
    source, target = edge_words(graphs)
    nodes = _distinct(node_document, graphs.words.astype(np.int64), used[node_document] & (graphs.words < n_words))
    kept = used[edge_document] & (source < n_words) & (target < n_words)
    pairs = _distinct(edge_document, pair_keys(source, target, n_words), kept)
    keys, in_documents = np.unique(pairs, return_counts=True)
    keys, in_documents = keys[in_documents >= _RARE], in_documents[in_documents >= _RARE]
    if most_pairs is not None and len(keys) > most_pairs:
        kept = np.sort(np.argsort(-in_documents, kind="stable")[:most_pairs])
        keys, in_documents = keys[kept], in_documents[kept]
    frequency = np.concatenate([np.bincount(nodes, minlength=n_words), in_documents])
    idf = np.log((1 + len(documents)) / (1 + frequency)) + 1  # as scikit-learn's
    letters = _spelt(words, frequency[:n_words] > 0) if len(words) else None
    if letters is None:
        idf[frequency == 0] = 0  # without letters a word that no document has says nothing
    return Known(keys, idf.astype(np.float32), float(np.log(1 + len(documents)) + 1), letters)


def _spelt(words: Sequence[str], learnt: NDArray[np.bool_]) -> csr_matrix | None:
    """What words are spelt with, of unit length, n-grams rare among `learnt` words weighing more: (words, n-grams)."""
    ngrams = TfidfVectorizer(analyzer=_ngrams, binary=True, min_df=_RARE)
    try:
        ngrams.fit([words[number] for number in np.flatnonzero(learnt).tolist()])
    except ValueError:  # no two words share any
        return None
    return ngrams.transform(words)


def _ngrams(word: str) -> list[str]:
    """Runs of letters of a word; a piece that goes on a word has no beginning."""
    spelt = word.removeprefix(CONTINUED) + " " if word.startswith(CONTINUED) else f" {word} "
    return [spelt[k : k + _LETTERS] for k in range(max(1, len(spelt) - _LETTERS + 1))]


def _distinct(document: Rows, part: Rows, kept: NDArray[np.bool_]) -> Rows:
    """Parts, each once a document."""
    document, part = document[kept], part[kept]
    order = np.lexsort((part, document))
    document, part = document[order], part[order]
    first = np.ones(len(part), bool)
    first[1:] = (document[1:] != document[:-1]) | (part[1:] != part[:-1])
    return np.asarray(part[first])


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
