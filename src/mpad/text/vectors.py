"""Word vectors → one row per id.

Sources: pieces of words distilled from a sentence transformer; a file of pretrained vectors; word2vec trained on the
corpus itself, as the paper does for Yelp; several of these side by side; or nothing, in which case the rows start at
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
_LARGEST = 65504.0  # rows are kept in half precision
_SUFFIXES = frozenset({".bin", ".txt", ".vec", ".npz", ".gz", ".xz", ".bz2", ".zip"})  # of files of vectors


@dataclass(frozen=True)
class WordVectors:
    """A table of word vectors, one row a word of the vocabulary, then the spare rows."""

    vocabulary: Vocabulary
    rows: NDArray[np.float32]  # (vocabulary.n_rows, width)
    covered: int  # training words that the source knows: has in its file, or as a whole piece
    known: NDArray[np.bool_] | None = None  # (len(vocabulary),), whether the file has the word, if there is a file

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return int(self.rows.shape[1])


def make_vectors(
    sources: Sequence[str | Path],
    texts: Sequence[str],
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    width: int,
    extra: int,
) -> WordVectors:
    """Rows of one source, or of several side by side: "corpus", a file, or a model that has pieces of words.

    The first source brings words that the training text has not; the others have rows for them too, where they can.
    `width` is that of vectors trained on the corpus.
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
    rows = np.concatenate([_filled_up(part.rows, vocabulary.n_rows) for part in parts], axis=1)
    return WordVectors(vocabulary, rows, max(part.covered for part in parts))


def _filled_up(rows: NDArray[np.float32], n: int) -> NDArray[np.float32]:
    """With rows of zeros before the spare ones, for words that another source has brought."""
    return np.insert(rows, [len(rows) - SPARE_ROWS] * (n - len(rows)), 0, axis=0) if len(rows) < n else rows


def compose_vectors(pieces: PieceVectors, vocabulary: Vocabulary, extra: int = 0) -> WordVectors:
    """Give each word the mean of its pieces' rows, and the vocabulary the first `extra` pieces besides.

    Pieces come in the order of their frequency, about; from them `Vocabulary` puts together words that come later.
    """
    full = vocabulary.extended(pieces.pieces()[:extra])
    rows = np.zeros((full.n_rows, pieces.width), np.float32)
    rows[: len(vocabulary)] = pieces.rows(vocabulary.words)
    place = pieces.tokenizer.get_vocab()
    rows[len(vocabulary) : len(full)] = pieces.table[[place[word] for word in full.words[len(vocabulary) :]]]
    whole = sum(word.lower() in place for word in vocabulary.words)
    return WordVectors(full, rows, covered=whole)


def load_vectors(path: str | Path, vocabulary: Vocabulary, extra: int = 0, seed: int = 0) -> WordVectors:
    """Read the rows of the vocabulary's words, and of the file's first `extra` words besides.

    Vector files list frequent words first, so those are the words that new documents will bring. A training
    word with capitals that the file does not have takes the row of the same word without; one that it does not have
    at all gets a random row, of the same mean and spread as the others.
    """
    path = Path(path)
    places = _Places(vocabulary, extra)
    table: NDArray[np.float32] | None = None
    known = np.zeros(len(vocabulary) + extra + SPARE_ROWS, bool)
    lent = np.zeros_like(known)
    for word, row in read_rows(path, places.wants):
        if table is None:  # the one large array here: everything else is streamed
            table = np.empty((len(known), len(row)), np.float32)
        if not np.abs(row).max() < _LARGEST:  # NaN fails too
            raise VectorFileError(f"{path}: the vector of '{word}' holds NaN or a number beyond {_LARGEST:.0f}")
        own = places.own(word)
        if own is not None and not known[own]:
            table[own], known[own] = row, True
        borrowing = [number for number in places.borrowing(word) if not known[number]]
        table[borrowing], lent[borrowing] = row, True
    if table is None or not (known | lent)[: len(vocabulary)].any():
        raise VectorFileError(
            f"{path}: holds none of the {len(vocabulary):,} words of these documents: another language, or "
            "another case (tokenizer='kim-cased' keeps capitals)?"
        )
    full = vocabulary.extended(places.others)
    table, filled = table[: full.n_rows], (known | lent)[: full.n_rows]
    sample, rowless = table[filled][:50_000], ~filled
    table[rowless] = _random_rows(int(rowless.sum()), table.shape[1], float(sample.std()), seed) + sample.mean()
    return WordVectors(full, table, int(known[: full.seen].sum()), filled[: len(full)])


class _Places:
    """Which rows of the table a word of the file fills."""

    def __init__(self, vocabulary: Vocabulary, extra: int) -> None:
        self._vocabulary, self._extra = vocabulary, extra
        self.others: dict[str, int] = {}  # words that the training text does not have
        self._capitals: dict[str, list[int]] = {}  # words with capitals, by what they are without
        for number, word in enumerate(vocabulary.words):
            if word != word.lower():
                self._capitals.setdefault(word.lower(), []).append(number)

    def own(self, word: str) -> int | None:
        """The word's own row."""
        for form in (word, _escaped(word)):
            if form in self._vocabulary:
                return self._vocabulary.id(form)
        if word not in self.others and len(self.others) < self._extra:
            self.others[word] = len(self._vocabulary) + len(self.others)
        return self.others.get(word)

    def borrowing(self, word: str) -> list[int]:
        """Rows of the same word with capitals, which take this one's while they have none of their own."""
        return self._capitals.get(word, [])

    def wants(self, word: str) -> bool:
        """Whether the word fills any row."""
        return self.own(word) is not None or word in self._capitals


def _escaped(word: str) -> str:
    r"""Kim's tokenizer writes `?` as `\?`; vector files do not."""
    return "\\" + word


def train_vectors(
    texts: Sequence[str], tokenizer: Tokenizer, vocabulary: Vocabulary, width: int, seed: int = 0
) -> WordVectors:
    """Learn the rows from the corpus itself by word2vec (gensim; skip-gram, window 5, 5 passes)."""
    word2vec = require("gensim.models.word2vec", extra="vectors")
    sentences = list(iterate_sentences(texts, tokenizer))
    model = word2vec.Word2Vec(sentences, vector_size=width, window=5, min_count=1, sg=1, epochs=5, seed=seed, workers=1)
    spread = float(np.asarray(model.wv.vectors).std())
    rows = _random_rows(vocabulary.n_rows, width, spread, seed)
    known = [number for number, word in enumerate(vocabulary.words) if word in model.wv]
    for number in known:
        rows[number] = model.wv[vocabulary.words[number]]
    return WordVectors(vocabulary, rows, covered=len(known))


def random_vectors(vocabulary: Vocabulary, width: int, seed: int = 0) -> WordVectors:
    """Give rows to start learning from."""
    if width < 1:
        raise InputError(f"vectors need at least one number a word, not {width}")
    return WordVectors(vocabulary, random_rows(vocabulary.n_rows, width, seed), covered=0)


def random_rows(n_rows: int, width: int, seed: int) -> NDArray[np.float32]:
    """Rows to start learning from: (n_rows, width)."""
    return _random_rows(n_rows, width, 0.1, seed)


def _random_rows(n_rows: int, width: int, spread: float, seed: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).standard_normal((n_rows, width), dtype=np.float32)
    return rows * np.float32(spread)
