"""Corpora that need not fit into memory: files and Hugging Face datasets, read in chunks of documents.

A corpus is a list of pieces, which several processes can read in parallel: row groups of Parquet, a file of CSV or JSON
lines, a shard of a `datasets.Dataset`. The digest of a piece's content is the key of cached results.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Any

from mpad.data.readers import Files, as_names, find_columns, matching_files, read_examples
from mpad.data.tables import Table, kind_of, open_parquet, open_table, read_parquet
from mpad.errors import DataFileError

STREAMED = (".parquet", ".csv", ".tsv", ".tab", ".jsonl", ".ndjson")  # formats, uncompressed
CHUNK = 4096  # documents per chunk
_ROW_GROUPS = 64 << 20  # approximate bytes of Parquet per piece


@dataclass(frozen=True)
class Columns:
    """The columns of text and label; None where they are guessed."""

    text: str | None = None
    label: str | tuple[str, ...] | None = None
    separator: str | None = None
    need_labels: bool = True


@dataclass(frozen=True)
class Chunk:
    """Some documents, with their labels if they have any."""

    texts: list[str]
    labels: list[Any]


@dataclass(frozen=True)
class Piece:
    """A part of a corpus that can be read independently."""

    source: Any  # the file's path, or a Hugging Face dataset
    columns: Columns
    part: tuple[int, int] | None = None  # first and end row group of Parquet; or shard number and number of shards
    key: str = ""  # unique key of a source without a fingerprint

    def digest(self) -> str:
        """Return a digest of the piece's content; it does not depend on the path."""
        held = hashlib.blake2b(digest_size=16)
        if isinstance(self.source, Path):
            state = self.source.stat()
            held.update(_file_digest(self.source, state.st_size, state.st_mtime_ns))
        else:
            held.update((self.key or self.source._fingerprint).encode())
        held.update(repr((self.part, self.columns)).encode())
        return held.hexdigest()

    def chunks(self) -> Iterator[Chunk]:
        """Yield the piece's documents, in order."""
        table, columns = self._table(), self.columns
        text_at, labels_at = find_columns(table, columns.text, columns.label, columns.need_labels)
        examples = read_examples(table, text_at, labels_at, columns.separator)
        while chunk := list(islice(examples, CHUNK)):
            texts, labels = [text for text, _, _ in chunk], [label for _, label, _ in chunk]
            yield Chunk(texts, labels if labels_at else [])

    def _table(self) -> Table:
        if not isinstance(self.source, Path):
            return _dataset_rows(self.source, self.part)
        if self.part is not None:
            return read_parquet(self.source, range(*self.part))
        return open_table(self.source, [self.columns.text, *as_names(self.columns.label)], streamed=True)


@lru_cache(maxsize=1 << 16)
def _file_digest(path: Path, size: int, changed: int) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").digest()


def list_pieces(data: Any, columns: Columns) -> list[Piece]:
    """Split a file, all files of a pattern, several of these, or a Hugging Face dataset into pieces."""
    if not isinstance(data, (str, Path, list, tuple)):
        return _dataset_pieces(data, columns)
    pieces = []
    for file in matching_files(data):
        if file.is_dir() or kind_of(file) not in STREAMED or file.suffix.lower() not in STREAMED:
            raise DataFileError(f"{file}: only {', '.join(STREAMED)} are streamed, not packed; others go to fit")
        if kind_of(file) == ".parquet":
            pieces += [Piece(file, columns, part) for part in _row_groups(file)]
        else:
            pieces.append(Piece(file, columns))
    return pieces


def _dataset_pieces(data: Any, columns: Columns) -> list[Piece]:
    if isinstance(data, dict):
        raise DataFileError(f"expected a dataset to stream, found {type(data).__name__}; name one of {', '.join(data)}")
    if not hasattr(data, "column_names") or not hasattr(data, "shard"):
        raise DataFileError(
            f"expected files or a Hugging Face dataset to stream, found {type(data).__name__}; texts go to fit"
        )
    if hasattr(data, "__len__"):
        shards, key = max(1, len(data) // (16 * CHUNK)), ""
    else:  # an IterableDataset has no fingerprint: a random key, so that nothing cached is reused
        shards, key = data.num_shards, token_hex(16)
    return [Piece(data, columns, (number, shards), key) for number in range(shards)]


def total_size(data: Files) -> int:
    """Return the size of all files of a corpus in bytes."""
    return sum(file.stat().st_size for file in matching_files(data) if file.is_file())


def _row_groups(path: Path) -> list[tuple[int, int]]:
    file = open_parquet(path, streamed=True, memory_map=True)
    parts, first, size = [], 0, 0
    for group in range(file.metadata.num_row_groups):
        size += file.metadata.row_group(group).total_byte_size
        if size >= _ROW_GROUPS or group + 1 == file.metadata.num_row_groups:
            parts.append((first, group + 1))
            first, size = group + 1, 0
    return parts


def _dataset_rows(dataset: Any, part: tuple[int, int] | None) -> Table:
    number, shards = part or (0, 1)
    own = dataset.shard(num_shards=shards, index=number, contiguous=True).with_format(None)
    features = own.features or {}
    names = list(own.column_names or next(iter(own), {}))  # without metadata, the keys of the first row
    kinds = [getattr(features.get(name), "feature", features.get(name)) for name in names]  # of the cells, or in lists
    classes = [getattr(kind, "names", None) for kind in kinds]

    def rows() -> Iterator[Sequence[Any]]:
        for batch in own.iter(batch_size=CHUNK):
            columns = zip(names, classes, strict=True)
            yield from zip(*[_name_classes(batch[name], known) for name, known in columns], strict=True)

    return Table(Path("dataset"), names, enumerate(rows(), start=1), "row")


def _name_classes(cells: Any, names: list[str] | None) -> Any:
    """Replace class numbers of a Hugging Face dataset by class names, also in lists; −1 means no label."""
    if names is None:
        return cells
    if isinstance(cells, list):
        return [_name_classes(cell, names) for cell in cells]
    return cells if not isinstance(cells, int) else names[cells] if cells >= 0 else None
