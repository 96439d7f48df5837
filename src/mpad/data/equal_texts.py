"""Find documents with the same text, so that no copy of a training document is used to measure a model."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def text_key(text: str) -> str:
    """Return a text without differences that do not matter: case, white space and Unicode forms."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())


def text_groups(texts: Sequence[str]) -> Rows:
    """Return a group number per document; equal texts share one. Groups are numbered by first appearance."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(text_key(text), len(numbers)) for text in texts], np.int64)


def text_hashes(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return 64 bits per document; equal texts have the same. For corpora that are too large for `text_groups`."""
    return np.array([_hash(text_key(text)) for text in texts], np.uint64)


def _hash(text: str) -> int:
    """Hash a text to 64 bits, the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Copies:
    """Counts of documents that share their text with another."""

    documents: int  # whose text already appeared in an earlier document
    conflicts: int  # texts that appear with different labels

    def __str__(self) -> str:
        kept = f"{self.documents:,} documents repeat an earlier text; copies stay on one side of every split"
        return f"{kept}; {self.conflicts:,} texts have conflicting labels" if self.conflicts else kept


def count_copies(groups: NDArray[Any], targets: NDArray[Any]) -> Copies:
    """Count copies, given the group of each document and its class number or its row of indicators."""
    if not len(groups):
        return Copies(0, 0)
    labels = targets if targets.ndim == 1 else np.unique(targets, axis=0, return_inverse=True)[1].reshape(-1)
    group = np.unique(groups, return_inverse=True)[1]
    distinct = np.unique(np.stack([group, labels.astype(np.int64)]), axis=1)[0]  # each label once per text
    return Copies(len(groups) - int(group.max()) - 1, int((np.bincount(distinct) > 1).sum()))


def one_per_group(groups: NDArray[Any] | None, n: int) -> tuple[Rows, Rows]:
    """Return one document per group, in order, and for each of n documents the place of its group's in that list.

    A split that is made of these documents and then spread to their copies keeps equal texts together.
    """
    if groups is None:
        return np.arange(n), np.arange(n)
    _, first, place = np.unique(groups, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return np.asarray(first[order], np.int64), rank[place.reshape(-1)]


# ── Texts that are nearly the same: retweets, templates, quotes with another end ──

_SKETCH, _BAND = 24, 3  # hashes per text; adjacent hashes that must agree for two texts to be compared
_NEAR = 0.7  # least share of word pairs that near copies have in common
_NOT_WORDS = re.compile(r"https?://\S+|www\.\S+|@\w+|\brt\b|[^\w\s]|\d+")


def near_copies(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Find documents that are nearly, but not quite, the text of an earlier one: (document, earlier one).

    Links, mentions, digits and punctuation do not count; texts are near if they share most of their pairs of
    neighboring words (MinHash, then an exact comparison).
    """
    pairs = [_word_pairs(text) for text in texts]
    keys = [text_key(text) for text in texts]
    generator = np.random.default_rng(0)
    factors = generator.integers(1, 2**63, (_SKETCH, 1), dtype=np.uint64) | np.uint64(1)
    first: dict[tuple[int, bytes], int] = {}
    near: list[tuple[int, int]] = []
    for number, own in enumerate(pairs):
        if not own:
            continue
        hashed = np.fromiter((_hash(" ".join(pair)) for pair in own), np.uint64, len(own))
        with np.errstate(over="ignore"):
            mixed = factors * hashed
            sketch = (mixed ^ (mixed >> np.uint64(29))).min(axis=1)
        match = None
        for band in range(_SKETCH // _BAND):
            place = band, sketch[band * _BAND : (band + 1) * _BAND].tobytes()
            other = first.setdefault(place, number)
            if match is None and other != number and len(own & pairs[other]) / len(own | pairs[other]) >= _NEAR:
                match = other
        if match is not None and keys[match] != keys[number]:
            near.append((number, match))
    return near


def _word_pairs(text: str) -> frozenset[tuple[str, str]]:
    words = _NOT_WORDS.sub(" ", text.casefold()).split()
    return frozenset(zip(words, words[1:], strict=False)) if len(words) > 3 else frozenset()
