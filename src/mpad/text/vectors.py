"""Word vectors → one row per id.

Sources: subword vectors distilled from a sentence transformer; a file of pretrained vectors; word2vec trained on the
corpus itself, as the paper does for Yelp; several of these concatenated; or none, in which case the rows start at
random and the network learns them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError, VectorFileError
from mpad.extras import require
from mpad.text.distilled import PieceVectors, piece_vectors
from mpad.text.tokenizer import Tokenizer
from mpad.text.vector_files import read_rows
from mpad.text.vocabulary import SPARE_ROWS, Vocabulary, iterate_sentences

CORPUS = "corpus"
_LARGEST = 65504.0  # rows are stored in half precision
_SUFFIXES = frozenset({".bin", ".txt", ".vec", ".npz", ".gz", ".xz", ".bz2", ".zip"})  # of vector files


@dataclass(frozen=True)
class WordVectors:
    """A table of word vectors: one row per word of the vocabulary, then the spare rows."""

    vocabulary: Vocabulary
    rows: NDArray[np.float32]  # (vocabulary.n_rows, width)
    covered: int  # training words that the source knows: in its file, or as one piece
    known: NDArray[np.bool_] | None = None  # (len(vocabulary),), True if the file has the word; None without a file

    @property
    def width(self) -> int:
        """Length of a row."""
        return int(self.rows.shape[1])


def make_vectors(
    sources: Sequence[str | Path],
    texts: Sequence[str],
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    width: int,
    extra: int,
) -> WordVectors:
    """Build the rows of one source, or of several concatenated: "corpus", a file, or a subword model.

    The first source adds up to `extra` words that the training text does not have; the others add columns for them
    where they can. `width` applies to vectors trained on the corpus.
    """
    parts: list[WordVectors] = []
    for source in sources:
        if source == CORPUS:
            part = train_vectors(texts, tokenizer, vocabulary, width)
        elif Path(source).is_file() or Path(source).suffix.lower() in _SUFFIXES:
            part = load_vectors(source, vocabulary, 0 if parts else extra)
        else:
            part = compose_vectors(piece_vectors(str(source)), vocabulary, 0 if parts else extra)
        parts.append(part)
        vocabulary = part.vocabulary
    rows = np.concatenate([_pad_rows(part.rows, vocabulary.n_rows) for part in parts], axis=1)
    return WordVectors(vocabulary, rows, max(part.covered for part in parts))


def _pad_rows(rows: NDArray[np.float32], n: int) -> NDArray[np.float32]:
    """Insert rows of zeros before the spare rows, for words that another source added."""
    return np.insert(rows, [len(rows) - SPARE_ROWS] * (n - len(rows)), 0, axis=0) if len(rows) < n else rows


def compose_vectors(pieces: PieceVectors, vocabulary: Vocabulary, extra: int = 0) -> WordVectors:
    """Build each word's row as the mean of its pieces', and add the first `extra` pieces to the vocabulary.

    Pieces are roughly in the order of their frequency; `Vocabulary` composes new words from them.
    """
    full = vocabulary.with_words(pieces.pieces()[:extra])
    rows = np.zeros((full.n_rows, pieces.width), np.float32)
    rows[: len(vocabulary)] = pieces.rows(vocabulary.words)
    place = pieces.tokenizer.get_vocab()
    rows[len(vocabulary) : len(full)] = pieces.table[[place[word] for word in full.words[len(vocabulary) :]]]
    return WordVectors(full, rows, covered=sum(word.lower() in place for word in vocabulary.words))


def load_vectors(path: str | Path, vocabulary: Vocabulary, extra: int = 0, seed: int = 0) -> WordVectors:
    """Read the rows of the vocabulary's words, and add the file's first `extra` other words.

    Vector files list frequent words first, so these are the words that new documents are likely to have. A training
    word with capitals that the file lacks takes the row of its lower-case form; a word that the file lacks entirely
    gets a random row, of the same mean and spread as the others.
    """
    path = Path(path)
    places = _Places(vocabulary, extra)
    table: NDArray[np.float32] | None = None
    known = np.zeros(len(vocabulary) + extra + SPARE_ROWS, bool)
    borrowed = np.zeros_like(known)
    for word, row in read_rows(path, places.wants):
        if table is None:  # the only large array: the file is streamed
            table = np.empty((len(known), len(row)), np.float32)
        if not np.abs(row).max() < _LARGEST:  # NaN fails too
            raise VectorFileError(f"{path}: the vector of '{word}' holds NaN or a number beyond {_LARGEST:.0f}")
        own = places.own(word)
        if own is not None and not known[own]:
            table[own], known[own] = row, True
        borrowers = [number for number in places.capitals.get(word, ()) if not known[number]]
        table[borrowers], borrowed[borrowers] = row, True
    if table is None or not (known | borrowed)[: len(vocabulary)].any():
        raise VectorFileError(
            f"{path}: holds none of the {len(vocabulary):,} words of these documents: another language, or "
            "another case (tokenizer='kim-cased' keeps capitals)?"
        )
    full = vocabulary.with_words(places.others)
    table, filled = table[: full.n_rows], (known | borrowed)[: full.n_rows]
    sample, rowless = table[filled][:50_000], ~filled
    table[rowless] = random_rows(int(rowless.sum()), table.shape[1], seed, float(sample.std())) + sample.mean()
    return WordVectors(full, table, int(known[: full.seen].sum()), filled[: len(full)])


class _Places:
    """The rows of the table that each word of a vector file fills."""

    def __init__(self, vocabulary: Vocabulary, extra: int) -> None:
        self._vocabulary, self._extra = vocabulary, extra
        self.others: dict[str, int] = {}  # words that the training text does not have
        self.capitals: dict[str, list[int]] = {}  # rows of words with capitals, by their lower-case form
        for number, word in enumerate(vocabulary.words):
            if word != word.lower():
                self.capitals.setdefault(word.lower(), []).append(number)

    def own(self, word: str) -> int | None:
        """Return the word's own row, assigning one while there are extra rows; None if there is none."""
        for form in (word, "\\" + word):  # Kim's tokenizer writes `?` as `\?`
            if form in self._vocabulary:
                return self._vocabulary.id(form)
        if word not in self.others and len(self.others) < self._extra:
            self.others[word] = len(self._vocabulary) + len(self.others)
        return self.others.get(word)

    def wants(self, word: str) -> bool:
        """Return whether the word fills any row."""
        return self.own(word) is not None or word in self.capitals


def train_vectors(
    texts: Sequence[str], tokenizer: Tokenizer, vocabulary: Vocabulary, width: int, seed: int = 0
) -> WordVectors:
    """Train the rows on the corpus itself by word2vec (gensim; skip-gram, window 5, 5 epochs)."""
    word2vec = require("gensim.models.word2vec", extra="vectors")
    sentences = list(iterate_sentences(texts, tokenizer))
    model = word2vec.Word2Vec(sentences, vector_size=width, window=5, min_count=1, sg=1, epochs=5, seed=seed, workers=1)
    spread = float(np.asarray(model.wv.vectors).std())
    rows = random_rows(vocabulary.n_rows, width, seed, spread)
    known = [number for number, word in enumerate(vocabulary.words) if word in model.wv]
    for number in known:
        rows[number] = model.wv[vocabulary.words[number]]
    return WordVectors(vocabulary, rows, covered=len(known))


def random_vectors(vocabulary: Vocabulary, width: int, seed: int = 0) -> WordVectors:
    """Return word vectors to start training from."""
    if width < 1:
        raise InputError(f"vectors need at least one number per word, not {width}")
    return WordVectors(vocabulary, random_rows(vocabulary.n_rows, width, seed), covered=0)


def random_rows(n_rows: int, width: int, seed: int, spread: float = 0.1) -> NDArray[np.float32]:
    """Draw random rows to start training from: (n_rows, width)."""
    rows = np.random.default_rng(seed).standard_normal((n_rows, width), dtype=np.float32)
    return rows * np.float32(spread)
