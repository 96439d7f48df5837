"""Find documents with the same text, so that no copy of a training document is used to measure a model."""

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
    keys = (text_key(text).encode("utf-8", "surrogatepass") for text in texts)
    return np.array([int.from_bytes(blake2b(key, digest_size=8).digest(), "little") for key in keys], np.uint64)


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
