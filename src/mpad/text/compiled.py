"""Compiled tokenizing: words and their numbers in one pass over the text, and pieces of words (native/tokenize.h)."""

from collections.abc import Sequence
from ctypes import Structure, byref, c_int, c_long, c_void_p
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad import native
from mpad.native import at

_FIRST = 1 << 13  # initial capacity, in words


def available() -> bool:
    """Return whether the compiled tokenizer is available."""
    return native.library is not None


def _concatenate(words: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the UTF-8 bytes of all words, and the offset of each."""
    encoded = [word.encode("utf-8", "surrogatepass") for word in words]
    start = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(word) for word in encoded], out=start[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), start


class WordNumbers:
    """Words, numbered by first appearance. Several threads may call `read` at once, but not `learn`."""

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
