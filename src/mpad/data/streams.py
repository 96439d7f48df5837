"""Documents of corpora that need not fit into memory: files and Hugging Face datasets, some documents at a time.

A corpus is a list of pieces, which several processes can read side by side: a row group of Parquet, a file of CSV or
JSON lines, a shard of a `datasets.Dataset`. What a piece holds has a digest, by which work on it can be kept.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from secrets import token_hex
from typing import Any

from mpad.data.readers import (
    KNOWN_NAMES,
    Column,
    Files,
    label_of,
    label_places,
    matching_files,
    text_cell,
    text_column,
)
from mpad.data.tables import Table, kind_of, open_table
from mpad.errors import DataFileError

STREAMED = (".parquet", ".csv", ".tsv", ".tab", ".jsonl", ".ndjson")  # kinds of files, not packed
CHUNK = 4096  # documents that travel together
_ROW_GROUPS = 64 << 20  # bytes of Parquet in one piece, about


@dataclass(frozen=True)
class Columns:
    """Which columns are text and label; None where they are to be guessed."""

    text: str | None = None
    label: str | tuple[str, ...] | None = None
    separator: str | None = None
    need_labels: bool = True


@dataclass(frozen=True)
class Chunk:
    """Some documents, with labels where they have any."""

    texts: list[str]
    labels: list[Any]


@dataclass(frozen=True)
class Piece:
    """A part of a corpus that is read by itself."""

    source: Any  # the file's path, or a Hugging Face dataset
    columns: Columns
    part: tuple[int, int] | None = None  # row groups of Parquet, from and to; a shard and how many there are
    key: str = ""  # of a source that does not say what it holds, one that no other has

    def digest(self) -> str:
        """What the piece holds, as a number: the same content has the same digest, wherever it is kept."""
        held = hashlib.blake2b(digest_size=16)
        if isinstance(self.source, Path):
            state = self.source.stat()
            held.update(_file_digest(self.source, state.st_size, state.st_mtime_ns))
        else:
            held.update((self.key or self.source._fingerprint).encode())
        held.update(repr((self.part, self.columns)).encode())
        return held.hexdigest()

    def chunks(self) -> Iterator[Chunk]:
        """Its documents, in order."""
        table = self._table()
        columns, named = self.columns, self.columns.label
        wanted = [named] if isinstance(named, str) else list(named or ())
        text_at = text_column(table, columns.text)
        labels_at = label_places(table, wanted, columns.need_labels, text_at)
        texts: list[str] = []
        labels: list[Any] = []
        for number, row in table.rows:
            texts.append(text_cell(table, number, row[text_at], text_at))
            if labels_at:
                labels.append(label_of(table, number, row, labels_at, columns.separator))
            if len(texts) == CHUNK:
                yield Chunk(texts, labels)
                texts, labels = [], []
        if texts:
            yield Chunk(texts, labels)

    def _table(self) -> Table:
        if not isinstance(self.source, Path):
            return _dataset_rows(self.source, self.part)
        if self.part is not None:
            return _parquet_rows(self.source, self.part)
        label = self.columns.label
        labels = [label] if isinstance(label, str) else list(label or ())
        wanted = [name for name in (self.columns.text, *labels) if name is not None]
        return open_table(self.source, wanted, KNOWN_NAMES, streamed=True)


@lru_cache(maxsize=1 << 16)
def _file_digest(path: Path, size: int, changed: int) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").digest()


def pieces_of(data: Any, columns: Columns) -> list[Piece]:
    """The pieces of a file, of all files of a pattern, of several of these, or of a Hugging Face dataset."""
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
    else:  # an IterableDataset: nobody knows what it will give, so what was made of it is not taken up again
        shards, key = data.num_shards, token_hex(16)
    return [Piece(data, columns, (number, shards), key) for number in range(shards)]


def size_of(data: Files) -> int:
    """Bytes of all files that are meant."""
    return sum(file.stat().st_size for file in matching_files(data) if file.is_file())


def _row_groups(path: Path) -> list[tuple[int, int]]:
    file = _open_parquet(path)
    parts, first, size = [], 0, 0
    for group in range(file.metadata.num_row_groups):
        size += file.metadata.row_group(group).total_byte_size
        if size >= _ROW_GROUPS or group + 1 == file.metadata.num_row_groups:
            parts.append((first, group + 1))
            first, size = group + 1, 0
    return parts


def _open_parquet(path: Path) -> Any:
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(path, memory_map=True)
    except (pyarrow.ArrowException, OSError) as error:
        said = " ".join(str(error).split())[:200]
        raise DataFileError(f"{path}: not a Parquet file that can be read: {said}") from None


def _parquet_rows(path: Path, part: tuple[int, int]) -> Table:
    import pyarrow

    file = _open_parquet(path)
    groups = range(*part)

    def rows() -> Iterator[tuple[int, Sequence[Any]]]:
        number = sum(file.metadata.row_group(group).num_rows for group in range(groups.start))
        try:
            for batch in file.iter_batches(CHUNK, row_groups=list(groups)):
                for row in zip(*[column.to_pylist() for column in batch.columns], strict=True):
                    number += 1
                    yield number, row
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DataFileError(f"{path}: broken after row {number:,}: {str(error)[:200]}") from None

    schema = file.schema_arrow
    return Table(path, schema.names, rows(), "row", {column.name: str(column.type) for column in schema})


def _dataset_rows(dataset: Any, part: tuple[int, int] | None) -> Table:
    number, shards = part or (0, 1)
    own = dataset.shard(num_shards=shards, index=number, contiguous=True).with_format(None)
    features = own.features or {}
    names = list(own.column_names or next(iter(own), {}))  # of one that is made as it is read, those of its first row
    named = {name: _class_names(features.get(name)) for name in names}

    def rows() -> Iterator[tuple[int, Sequence[Any]]]:
        at = 0
        for batch in own.iter(batch_size=CHUNK):
            for row in zip(*[_with_names(batch[name], named.get(name)) for name in names], strict=True):
                at += 1
                yield at, row

    return Table(Path("dataset"), names, rows(), "row")


def _class_names(feature: Any) -> list[str] | None:
    """Names of class numbers, or of lists of them, where a Hugging Face dataset has any."""
    names: list[str] | None = getattr(getattr(feature, "feature", feature), "names", None)
    return names


def _with_names(column: Column, names: list[str] | None) -> Column:
    """Class numbers of a Hugging Face dataset as the names that it has for them; −1 stands for no label."""
    if names is None:
        return column
    return [_with_names(cell, names) if isinstance(cell, list) else _class_name(cell, names) for cell in column]


def _class_name(cell: Any, names: list[str]) -> Any:
    return cell if not isinstance(cell, int) else names[cell] if cell >= 0 else None
