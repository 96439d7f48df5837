"""Vectors of documents for comparing them with each other: nearest documents, near-duplicates, outliers, topics."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from mpad.data.equal_texts import near_copies, text_groups
from mpad.encoder.encoder import AUTO as SHIPPED
from mpad.encoder.encoder import load_encoder, normalize
from mpad.encoder.start import LEAST_KNOWN, known_share
from mpad.text.tokenizer import AUTO, as_tokenizer
from mpad.text.vocabulary import learn_vocabulary

Vectors = NDArray[np.float32]
Rows = NDArray[np.int64]
_WIDTH = 100  # of vectors for languages without an encoder
_CHUNK = 1_000  # documents compared with all others at a time
_SAME = 0.97  # cosine from which two documents are near-duplicates
_NEIGHBORS = 5
_FAR = 3.0  # interquartile ranges above the third quartile: an outlier
_TOPIC, _MOST_TOPICS = 100, 20  # documents per topic, and topics
_TOPIC_WORDS = 3


def has_encoder(texts: Sequence[str]) -> bool:
    """Return whether the shipped encoder knows most words of these texts."""
    vocabulary, corpus = learn_vocabulary(list(texts), as_tokenizer(AUTO, texts))
    counts = np.bincount(corpus.ids, minlength=len(vocabulary))[: len(vocabulary)]
    return known_share(load_encoder(SHIPPED), vocabulary.words, counts) >= LEAST_KNOWN


def text_vectors(texts: Sequence[str]) -> Vectors:
    """Return a vector of length one per document: the English encoder's, or for other languages by TF-IDF and SVD."""
    if has_encoder(texts):
        return load_encoder(SHIPPED).encode(list(texts))
    tfidf = TfidfVectorizer(analyzer=as_tokenizer(AUTO, texts).words, sublinear_tf=True).fit_transform(texts)
    width = min(_WIDTH, min(tfidf.shape) - 1)
    if width < 1:
        return np.ones((len(texts), 1), np.float32)
    return normalize(TruncatedSVD(width, random_state=0).fit_transform(tfidf).astype(np.float32))


def nearest(vectors: Vectors, queries: Vectors, n: int) -> tuple[Rows, Vectors]:
    """Return the rows of the `n` nearest vectors of each query, the nearest first, and their cosines: (queries, n)."""
    n = min(n, len(vectors))
    rows, cosines = np.zeros((len(queries), n), np.int64), np.zeros((len(queries), n), np.float32)
    for start in range(0, len(queries), _CHUNK):
        part = queries[start : start + _CHUNK] @ vectors.T
        best = np.argpartition(-part, n - 1, axis=1)[:, :n] if n < len(vectors) else np.argsort(-part, axis=1)
        order = np.take_along_axis(part, best, 1).argsort(1, kind="stable")[:, ::-1]
        rows[start : start + _CHUNK] = np.take_along_axis(best, order, 1)
        cosines[start : start + _CHUNK] = np.take_along_axis(part, rows[start : start + _CHUNK], 1)
    return rows, cosines


@dataclass(frozen=True)
class Neighborhoods:
    """Nearest other documents of each document."""

    rows: Rows  # (documents, neighbors)
    cosines: Vectors

    @classmethod
    def of(cls, vectors: Vectors, n: int = _NEIGHBORS) -> "Neighborhoods":
        """Find the nearest documents of each document, without itself."""
        rows, cosines = nearest(vectors, vectors, n + 1)
        own = rows == np.arange(len(vectors))[:, None]
        own[~own.any(1), -1] = True  # copies of a document may push it out
        shape = len(vectors), rows.shape[1] - 1
        return cls(rows[~own].reshape(shape), cosines[~own].reshape(shape))

    def outliers(self) -> Rows:
        """Return the documents that are far from all others, the farthest first."""
        if self.cosines.shape[1] == 0 or len(self.cosines) < 2 * _NEIGHBORS:
            return np.zeros(0, np.int64)
        distance = 1 - self.cosines.mean(1)
        low, high = np.percentile(distance, [25, 75])
        far = np.flatnonzero(distance > high + _FAR * (high - low))
        return np.asarray(far[np.argsort(-distance[far], kind="stable")])


def near_duplicates(texts: Sequence[str], neighborhoods: Neighborhoods) -> list[list[int]]:
    """Return groups of documents that are the same or nearly so: equal texts, templates, or almost equal vectors."""
    parent = list(range(len(texts)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    same = np.argwhere(neighborhoods.cosines >= _SAME)
    groups = text_groups(texts)
    first = np.unique(groups, return_index=True)[1]
    pairs = [(row, int(neighborhoods.rows[row, place])) for row, place in same.tolist()]
    pairs += near_copies(texts) + list(enumerate(first[groups].tolist()))
    for one, other in pairs:
        if texts[one].strip() and texts[other].strip():
            parent[root(one)] = root(other)
    members: dict[int, list[int]] = {}
    for row in range(len(texts)):
        members.setdefault(root(row), []).append(row)
    return [group for group in members.values() if len(group) > 1]


def name_topics(texts: Sequence[str], vectors: Vectors) -> list[str]:
    """Group documents into topics, and return the topic of each, named by its most distinctive words."""
    k = min(len(texts) // _TOPIC, _MOST_TOPICS)
    if k < 2:
        return ["all"] * len(texts)
    topic = MiniBatchKMeans(k, random_state=0, n_init=3).fit_predict(vectors)
    words = as_tokenizer(AUTO, texts).words
    own: list[Counter[str]] = [Counter() for _ in range(k)]
    for text, number in zip(texts, topic.tolist(), strict=True):
        own[number].update({word for word in words(text) if len(word) > 2 and word.isalpha()})
    total, sizes = sum(own, Counter()), np.bincount(topic, minlength=k)
    names = []
    for counts, size in zip(own, sizes.tolist(), strict=True):
        # How much more often a word occurs here than by chance, in standard deviations.
        surprise = {
            word: (n - size * (share := total[word] / len(texts))) / (size * share + 1) ** 0.5
            for word, n in counts.items()
        }
        names.append(", ".join(sorted(surprise, key=lambda word: -surprise[word])[:_TOPIC_WORDS]))
    return [names[number] for number in topic.tolist()]
