"""The type of a dataset, and how it is made of rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from zlib import crc32

from mpad.data.readers import Documents


@dataclass(frozen=True)
class Dataset:
    """A corpus with its split: labelled documents to train on, to test on, and perhaps to choose the epoch by.

    A corpus that is meant for cross-validation has all its documents in `train`; its `test` is empty.
    """

    name: str
    train: Documents
    test: Documents
    validation: Documents | None = None

    @property
    def classes(self) -> list[str]:
        """The labels, in order."""
        return sorted(set(self.train.labels or []))

    @property
    def cross_validated(self) -> bool:
        """Return whether the dataset has no test part and is cross-validated."""
        return not len(self.test)

    @property
    def parts(self) -> dict[str, Documents]:
        """Every part that holds documents, by name."""
        named = {"train": self.train, "validation": self.validation, "test": self.test}
        return {name: part for name, part in named.items() if part is not None and len(part)}


def as_documents(rows: Iterable[tuple[str, str]]) -> Documents:
    """Return (label, text) rows as documents."""
    kept = list(rows)
    return Documents([text for _, text in kept], [label for label, _ in kept])


def split_by_checksum(name: str, rows: Iterable[tuple[str, str, str]]) -> Dataset:
    """Split (key, label, text) rows by a checksum of the key: one document in five is for testing."""
    parts: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for key, label, text in rows:
        parts[crc32(key.encode()) % 5 == 0].append((label, text))
    return Dataset(name, train=as_documents(parts[False]), test=as_documents(parts[True]))
