"""Words ↔ ids.

A word's id is its row in the table of word vectors. Unknown words share a few spare rows. If the vocabulary has pieces
of words, a new word is composed of them and takes the next spare row within its corpus (`new_words`). Otherwise a
checksum of the word chooses the row: two unknown words of a document usually stay two nodes of its graph, and a word
gets the same row every time, on every machine.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from ctypes import Structure, byref, c_int, c_long, c_void_p
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, groupby, pairwise
from typing import Any, TypeGuard
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from mpad import native
from mpad.native import at
from mpad.text.tokenizer import DOCUMENT_END, SENTENCE_END, KimTokenizer, Tokenizer

SPARE_ROWS = 256
CONTINUED = "##"  # prefix of a piece inside a word
LONGEST_PIECED = 100  # characters of the longest word that is composed of pieces
_DOCUMENT, _SENTENCE = -1, -2  # temporary ids of the markers
_FIRST = 1 << 13  # initial capacity of `WordNumbers`, in words


@dataclass(frozen=True)
class EncodedCorpus:
    """The words of a corpus as flat arrays: documents are runs of sentences, sentences are runs of ids.

    Without sentence splitting, each document is one sentence. A document without words keeps one empty
    sentence; other empty sentences are dropped.
    """

    ids: NDArray[np.int32]  # (n_words,)
    sentence_start: NDArray[np.int64]  # (n_sentences + 1,) into ids
    document_start: NDArray[np.int64]  # (n_documents + 1,) into sentences
    new_words: tuple[tuple[int, ...], ...] = ()  # piece ids of the word in each used spare row

    def documents(self, first: int, last: int) -> "EncodedCorpus":
        """Return only documents first … last − 1, whose new words are not numbered yet."""
        start, end = self.document_start[first], self.document_start[last]
        sentences = self.sentence_start[start : end + 1]
        own = self.document_start[first : last + 1] - start
        return EncodedCorpus(self.ids[sentences[0] : sentences[-1]], sentences - sentences[0], own)

    def shift_spare_rows(self, before: int, after: int) -> "EncodedCorpus":
        """Return the corpus for a vocabulary that grew from `before` to `after` words: spare rows follow the words."""
        return replace(self, ids=np.where(self.ids < before, self.ids, self.ids + (after - before)).astype(np.int32))


class _Ids(dict[str, int]):
    """Word → id; an unknown word gets a spare row, and is not stored."""

    n_words = 0

    def __missing__(self, word: str) -> int:
        return self.n_words + crc32(word.encode("utf-8", "surrogatepass")) % SPARE_ROWS


class _GrowingIds(dict[str, int]):
    """Word → id; an unknown word gets the next id."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


@dataclass(frozen=True)
class Vocabulary:
    """The known words, most frequent first."""

    words: Sequence[str]
    seen: int = field(default=-1)  # how many of them, from the first, are in the training text; −1: all

    def __len__(self) -> int:
        return len(self.words)

    @property
    def n_rows(self) -> int:
        """Rows of a table of vectors: one per word, then the spare rows."""
        return len(self.words) + SPARE_ROWS

    @cached_property
    def _ids(self) -> _Ids:
        ids = _Ids(zip(self.words, range(len(self.words)), strict=True))
        ids.n_words = len(self.words)
        ids.update({DOCUMENT_END: _DOCUMENT, SENTENCE_END: _SENTENCE})
        return ids

    @cached_property
    def _numbers(self) -> "WordNumbers":
        return WordNumbers(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._ids

    def id(self, word: str) -> int:
        """Return the row of a word; one of the spare rows if it is unknown."""
        return self._ids[word]

    def encode(
        self, texts: Sequence[str], tokenizer: Tokenizer, sentences: bool = False, compose: bool = True
    ) -> EncodedCorpus:
        """Turn documents into ids; `compose` builds new words from pieces where the vocabulary has them."""
        corpus = self._encode(texts, tokenizer, sentences)
        return self._assign_new_words(corpus, texts, tokenizer) if compose and self.has_pieces else corpus

    def _encode(self, texts: Sequence[str], tokenizer: Tokenizer, sentences: bool) -> EncodedCorpus:
        if _is_compiled(tokenizer):
            numbers, lower = self._numbers, tokenizer.lower
            parts = [numbers.read(text, lower, SPARE_ROWS) for text in tokenizer.joined(texts, sentences)]
        else:
            ids = self._ids
            parts = [
                np.fromiter(map(ids.__getitem__, words), np.int32, len(words))
                for words in tokenizer.split(texts, sentences)
            ]
        return _resolve_markers(np.concatenate(parts) if parts else np.zeros(0, np.int32))

    @cached_property
    def has_pieces(self) -> bool:
        """True if new words can be composed of pieces."""
        return any(word.startswith(CONTINUED) for word in self.words)

    def encode_parts(
        self, texts: Sequence[str], tokenizer: Tokenizer, sentences: bool = False
    ) -> Iterator[tuple[Sequence[str], EncodedCorpus]]:
        """Yield (texts, ids) of documents in parts whose new words fit the spare rows."""
        corpus = self._encode(texts, tokenizer, sentences)
        if not self.has_pieces or not len(texts):
            yield texts, corpus
            return
        ends = corpus.sentence_start[corpus.document_start]
        unknown = np.concatenate([[0], np.cumsum(corpus.ids >= len(self))])[ends]
        first = 0
        while first < len(texts):
            last = int(np.searchsorted(unknown, unknown[first] + SPARE_ROWS, side="right")) - 1
            last = min(max(last, first + 1), len(texts))
            part = texts[first:last]
            yield part, self._assign_new_words(corpus.documents(first, last), part, tokenizer)
            first = last

    def encode_words(self, words: Sequence[str]) -> tuple[NDArray[np.int32], tuple[tuple[int, ...], ...]]:
        """Return the ids of some words, and the pieces of new ones."""
        ids = np.array([self._ids[word] for word in words], np.int32)
        return self._number_new_words(ids, words) if self.has_pieces else (ids, ())

    def _assign_new_words(self, corpus: EncodedCorpus, texts: Sequence[str], tokenizer: Tokenizer) -> EncodedCorpus:
        """Give each new word of a corpus a spare row of its own, while there are any."""
        unknown = np.flatnonzero(corpus.ids >= len(self))
        if not len(unknown):
            return corpus
        starts = corpus.sentence_start[corpus.document_start]
        chosen = np.zeros(len(texts), bool)  # documents with new words: only these are tokenized again
        chosen[np.searchsorted(starts, unknown, side="right") - 1] = True
        split = tokenizer.split([texts[document] for document in np.flatnonzero(chosen).tolist()], sentences=False)
        words = [word for part in split for word in part if word != DOCUMENT_END]
        places, ids = np.repeat(chosen, np.diff(starts)), corpus.ids.copy()
        ids[places], new = self._number_new_words(ids[places], words)
        return replace(corpus, ids=ids, new_words=new)

    def _number_new_words(
        self, ids: NDArray[np.int32], words: Sequence[str]
    ) -> tuple[NDArray[np.int32], tuple[tuple[int, ...], ...]]:
        """Number new words by first appearance while there are spare rows; return all ids and the new words' pieces."""
        numbers: dict[str, int] = {}
        ids = ids.copy()
        for place in np.flatnonzero(ids >= len(self)).tolist():
            word = words[place]
            if word in numbers or len(numbers) < SPARE_ROWS:
                ids[place] = len(self) + numbers.setdefault(word, len(numbers))
        return ids, self._pieces_of_each(list(numbers))

    def pieces(self, word: str) -> tuple[int, ...]:
        """Return the ids of the pieces of a word, the longest first (WordPiece); empty if it cannot be split."""
        lowered, start, ids = word.lower(), 0, []
        while start < len(lowered) <= LONGEST_PIECED:
            end = len(lowered)
            while end > start:
                number = self._ids.get((CONTINUED if start else "") + lowered[start:end])
                if number is not None and number >= 0:
                    break
                end -= 1
            if end == start:
                return ()
            ids.append(int(number or 0))
            start = end
        return tuple(ids)

    def _pieces_of_each(self, words: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        if not has_compiled_words():
            return tuple(map(self.pieces, words))
        lowered = [word.lower() for word in words]
        return self._numbers.pieces([word if len(word) <= LONGEST_PIECED else "" for word in lowered], CONTINUED)

    def with_words(self, words: Iterable[str]) -> "Vocabulary":
        """Return a vocabulary with words added that the training text did not have."""
        fresh = [word for word in dict.fromkeys(words) if word not in self]
        return Vocabulary([*self.words, *fresh], seen=len(self.words) if self.seen < 0 else self.seen)


def piece_means(
    rows_of: Callable[[NDArray[np.int64]], NDArray[np.floating]], words: Sequence[Sequence[int]], width: int
) -> NDArray[np.float32]:
    """Average the rows of each word's pieces: (words, width); zeros for a word without pieces.

    `rows_of` returns the rows of pieces by their ids.
    """
    counts = np.fromiter(map(len, words), np.int64, len(words))
    means, most = np.zeros((len(words), width), np.float32), int(counts.max(initial=0))
    if most:
        ids, starts = np.fromiter(chain.from_iterable(words), np.int64), np.cumsum(counts) - counts
        in_order = (*range(1, most), 0)  # as `reduceat` of older versions adds: same bits
        for place in in_order:
            more = np.flatnonzero(counts > place)
            means[more] += rows_of(ids[starts[more] + place])
        means /= np.maximum(counts, 1)[:, None].astype(np.float32)
    return means


def learn_vocabulary(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    sentences: bool = False,
    min_count: int = 1,
    max_words: int | None = None,
) -> tuple[Vocabulary, EncodedCorpus]:
    """Collect the words of a corpus, most frequent first, and encode it, in one pass over the text.

    Words seen fewer than `min_count` times, or ranked beyond `max_words`, share the spare rows.
    """
    marked, by_number = _number_words(texts, tokenizer, sentences)
    counts = np.bincount(marked, minlength=len(by_number))
    counts[:2] = 0
    ranking = np.argsort(-counts, kind="stable")[: len(by_number) - 2]  # ties: first seen first
    ranking = ranking[counts[ranking] >= min_count][:max_words]
    vocabulary = Vocabulary([by_number[number] for number in ranking.tolist()], seen=len(ranking))
    rank = np.full(len(by_number), _DOCUMENT, np.int32)
    rank[1] = _SENTENCE
    kept = np.zeros(len(by_number), bool)
    kept[ranking] = kept[:2] = True
    rank[ranking] = np.arange(len(ranking))
    for number in np.flatnonzero(~kept).tolist():
        rank[number] = vocabulary.id(by_number[number])
    return vocabulary, _resolve_markers(rank[marked])


def _is_compiled(tokenizer: Tokenizer) -> TypeGuard[KimTokenizer]:
    """Return whether one compiled pass can tokenize and look up words."""
    return type(tokenizer) is KimTokenizer and has_compiled_words()


def _number_words(texts: Sequence[str], tokenizer: Tokenizer, sentences: bool) -> tuple[NDArray[np.int32], list[str]]:
    """Number words by first appearance; return the numbers and all words. The first two are the markers."""
    if _is_compiled(tokenizer):
        numbers, lower = WordNumbers(), tokenizer.lower
        parts = [numbers.learn(text, lower) for text in tokenizer.joined(texts, sentences)]
        marked = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        marked = np.where(marked < 0, -1 - marked, marked + 2).astype(np.int32)
        return marked, [DOCUMENT_END, SENTENCE_END, *numbers.words()]
    growing = _GrowingIds({DOCUMENT_END: 0, SENTENCE_END: 1})
    parts = [
        np.fromiter(map(growing.__getitem__, words), np.int32, len(words))
        for words in tokenizer.split(texts, sentences)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.int32), list(growing)


def _resolve_markers(marked: NDArray[np.int32]) -> EncodedCorpus:
    """Replace the markers among the ids by offsets."""
    is_marker = marked < 0
    at = np.flatnonzero(is_marker)
    end = at - np.arange(len(at))  # end of each sentence, not counting the markers before it
    length = end.copy()  # of each sentence
    length[1:] -= end[:-1]
    closes = marked[at] == _DOCUMENT
    document = np.cumsum(closes) - closes
    # Keep sentences with words; of a document without words, keep the last sentence.
    filled = np.zeros(int(closes.sum()), bool)
    filled[document[length > 0]] = True
    keep = (length > 0) | (closes & ~filled[document])
    sentences = np.bincount(document[keep], minlength=len(filled))
    return EncodedCorpus(
        ids=marked[~is_marker],
        sentence_start=np.concatenate([[0], end[keep]]).astype(np.int64),
        document_start=np.concatenate([[0], np.cumsum(sentences)]).astype(np.int64),
    )


def iterate_sentences(texts: Sequence[str], tokenizer: Tokenizer) -> Iterator[list[str]]:
    """Yield the words of each sentence of a corpus, for training word vectors."""
    for words in tokenizer.split(texts, sentences=True):
        for is_marker, sentence in groupby(words, lambda word: word == SENTENCE_END or word == DOCUMENT_END):
            if not is_marker:
                yield list(sentence)


# ── Words in C ──


def has_compiled_words() -> bool:
    """Return whether words can be read and numbered in C (native/tokenize.h)."""
    return native.library is not None


def _concatenate(words: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the UTF-8 bytes of all words, and the offset of each."""
    encoded = [word.encode("utf-8", "surrogatepass") for word in words]
    start = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(word) for word in encoded], out=start[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), start


class WordNumbers:
    """Words, numbered by first appearance, in C. Several threads may call `read` at once, but not `learn`."""

    def __init__(self, words: Sequence[str] = ()) -> None:
        self._letters, self._start = _concatenate(words)
        self.n = len(words)
        self._reserve(self.n, len(self._letters))

    def __len__(self) -> int:
        return self.n

    def words(self) -> list[str]:
        """Return all words, in the order of their numbers."""
        letters, start = self._letters.tobytes(), self._start[: self.n + 1].tolist()
        return [letters[a:b].decode("utf-8", "surrogatepass") for a, b in zip(start, start[1:], strict=False)]

    def learn(self, text: str, lower: bool) -> NDArray[np.int32]:
        """Return the number of each word of a text; new words get the next numbers.

        −1 marks the end of a document, −2 the end of a sentence.
        """
        data, parts = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8), []
        while True:
            result, done = self._read(data, lower, spare=0)
            parts.append(result)
            if done == len(data):
                return np.concatenate(parts)
            data = data[done:]
            self._reserve(2 * max(self.n, _FIRST), 2 * len(self._letters) + len(data))

    def read(self, text: str, lower: bool, spare: int) -> NDArray[np.int32]:
        """Return the number of each word of a text, without learning any.

        An unknown word gets one of `spare` numbers after the last word, by its checksum.
        """
        return self._read(np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8), lower, spare)[0]

    def pieces(self, words: Sequence[str], continued: str) -> tuple[tuple[int, ...], ...]:
        """Split each word into known pieces, the longest first (WordPiece), and return their numbers.

        The result is empty for a word that cannot be split. `continued` is the prefix of pieces inside a word.
        """
        letters, start = _concatenate(words)
        before = np.frombuffer(continued.encode(), np.uint8)
        scratch = np.empty(len(before) + len(letters), np.uint8)
        to, count = np.empty(len(letters), np.int32), np.empty(len(words), np.int64)
        library: Any = native.library
        inputs = [c_void_p(at(array)) for array in (letters, start)]
        prefix, outputs = (c_void_p(at(before)), c_long(len(before))), [c_void_p(at(x)) for x in (scratch, to, count)]
        library.mpad_word_pieces(byref(self._struct()), *inputs, c_long(len(words)), *prefix, *outputs)
        ends, numbers = np.cumsum(count).tolist(), to[: count.sum()].tolist()
        return tuple(tuple(numbers[first:last]) for first, last in pairwise([0, *ends]))

    def _read(self, data: NDArray[np.uint8], lower: bool, spare: int) -> tuple[NDArray[np.int32], int]:
        library: Any = native.library
        word, to, done = np.empty(len(data) + 2, np.uint8), np.empty(len(data), np.int32), c_long()
        of = self._struct()
        texts = c_void_p(at(data)), c_long(len(data)), c_int(lower), c_long(spare)
        library.mpad_read_words.restype = c_long
        count = library.mpad_read_words(byref(of), *texts, c_void_p(at(word)), c_void_p(at(to)), byref(done))
        if not spare:
            self.n = of.n
        return to[:count].copy(), done.value

    def _reserve(self, words: int, letters: int) -> None:
        start, own = np.zeros(words + 1, np.int64), np.empty(letters, np.uint8)
        used = self._start[self.n]
        start[: self.n + 1], own[:used] = self._start[: self.n + 1], self._letters[:used]
        self._start, self._letters, self._hash = start, own, np.empty(words, np.uint32)
        self._slots = np.zeros(1 << max(2 * words, 1).bit_length(), np.int32)
        library: Any = native.library
        library.mpad_index_words(byref(self._struct()))

    def _struct(self) -> Structure:
        arrays = {"letters": self._letters, "start": self._start, "hash": self._hash, "slots": self._slots}
        sizes = {"n": self.n, "n_slots": len(self._slots), "capacity": len(self._hash)}
        return native.pack("words", **arrays, **sizes, letters_capacity=len(self._letters))
