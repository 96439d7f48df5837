"""Words ↔ ids.

A word's id is its row in the table of word vectors. Unknown words share a few spare rows. If the vocabulary has pieces
of words, a new word is composed of them and takes the next spare row within its corpus (`new_words`). Otherwise a
checksum of the word chooses the row: two unknown words of a document usually stay two nodes of its graph, and a word
gets the same row every time, on every machine.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, groupby
from typing import TypeGuard
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from mpad.text import compiled
from mpad.text.tokenizer import DOCUMENT_END, SENTENCE_END, KimTokenizer, Tokenizer

SPARE_ROWS = 256
CONTINUED = "##"  # prefix of a piece inside a word
LONGEST_PIECED = 100  # characters of the longest word that is composed of pieces
_DOCUMENT, _SENTENCE = -1, -2  # temporary ids of the markers


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
    def _numbers(self) -> compiled.WordNumbers:
        return compiled.WordNumbers(self.words)

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
        if not compiled.available():
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
    return type(tokenizer) is KimTokenizer and compiled.available()


def _number_words(texts: Sequence[str], tokenizer: Tokenizer, sentences: bool) -> tuple[NDArray[np.int32], list[str]]:
    """Number words by first appearance; return the numbers and all words. The first two are the markers."""
    if _is_compiled(tokenizer):
        numbers, lower = compiled.WordNumbers(), tokenizer.lower
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
