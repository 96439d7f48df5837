"""Streaming of a data file as record batches, and of its rows with predictions to a Parquet file."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from mpad.data.readers import find_text_column, read_text
from mpad.data.tables import Absent, Table, kind_of, open_parquet, open_table, parquet_errors
from mpad.errors import DataFileError
from mpad.files.atomic import replacing
from mpad.scale.columns import ColumnPredictor
from mpad.scale.predictor import arrow_fields, fill_missing, predict_arrow

ROWS = 2048  # per batch
_GROUP_ROWS, _GROUP_BYTES = 1 << 16, 32 << 20  # per row group; the smaller limit applies
_KEY = b"mpad"  # metadata entry with the key of the job
_UNTYPED = (".csv", ".tsv", ".tab", ".txt")
_READ_BUFFER = 1 << 20


@dataclass(frozen=True)
class Shard:
    """Open data file: its schema, and its rows in batches with their texts."""

    path: Path
    schema: pyarrow.Schema
    batches: Iterator[tuple[pyarrow.RecordBatch, list[str]]]
    rows: int | None = None  # if the file states it


def open_shard(path: Path, text: str | None) -> Shard:
    """Open a file for streaming; `text` names the text column, None guesses it."""
    if kind_of(path) == ".parquet":
        return _open_parquet(path, text)
    return _open_table(path, text)


def write_predictions(shard: Shard, model: ColumnPredictor, out: Path, key: str) -> int:
    """Write the rows with their predictions, in order; return their number. The file appears only once complete."""
    fields = [*shard.schema, *arrow_fields(model, shard.schema.names)]
    schema = pyarrow.schema(fields, {**(shard.schema.metadata or {}), _KEY: key.encode()})
    rows, pending_rows = 0, 0
    pending: list[pyarrow.RecordBatch] = []
    with replacing(out) as temporary:
        with pyarrow.parquet.ParquetWriter(temporary, schema) as writer:
            for batch, texts in shard.batches:
                arrays = [*batch.columns, *predict_arrow(model, texts)]
                pending.append(pyarrow.RecordBatch.from_arrays(arrays, schema=schema))
                rows, pending_rows = rows + batch.num_rows, pending_rows + batch.num_rows
                if pending_rows >= _GROUP_ROWS or sum(one.nbytes for one in pending) >= _GROUP_BYTES:
                    writer.write_table(pyarrow.Table.from_batches(pending, schema))
                    pending, pending_rows = [], 0
            writer.write_table(pyarrow.Table.from_batches(pending, schema))
        if shard.rows is not None and rows != shard.rows:
            raise DataFileError(f"{shard.path}: says that it has {shard.rows:,} rows, but {rows:,} could be read")
    return rows


def read_key(out: Path) -> str | None:
    """Return the job key stored in a file; None if `mpad predict` did not write it."""
    try:
        metadata = pyarrow.parquet.read_schema(out).metadata or {}
    except (pyarrow.ArrowException, OSError):
        return None
    return metadata[_KEY].decode("utf-8", "replace") if _KEY in metadata else None


def count_rows(out: Path) -> int:
    """Return the number of rows of a Parquet file."""
    return int(pyarrow.parquet.read_metadata(out).num_rows)


def _open_parquet(path: Path, text: str | None) -> Shard:
    def batches() -> Iterator[tuple[pyarrow.RecordBatch, list[str]]]:
        try:
            with parquet_errors(path), file:
                for batch in file.iter_batches(ROWS, use_threads=False):
                    yield batch, fill_missing(batch.column(text_at).to_pylist(), schema.names[text_at])
        except UnicodeDecodeError:
            raise DataFileError(f"{path}: column '{schema.names[text_at]}' holds bytes that are not UTF-8") from None

    # Without pre-buffering, and with a buffer, pages are read one by one, not whole columns of a row group.
    file = open_parquet(path, streamed=True, pre_buffer=False, buffer_size=_READ_BUFFER)
    schema = file.schema_arrow
    types = {column.name: str(column.type) for column in schema}
    text_at = find_text_column(Table(path, schema.names, iter(()), "row", types), text)
    return Shard(path, schema, batches(), file.metadata.num_rows)


def _open_table(path: Path, text: str | None) -> Shard:
    """Open CSV, JSON lines and similar files by the rules of `mpad.data.tables`."""

    def reopen() -> Table:
        return open_table(path, [text], streamed=True)

    table = reopen()
    if not table.names:
        return Shard(path, pyarrow.schema([("text", pyarrow.string())]), iter(()))
    text_at = find_text_column(table, text)
    if kind_of(path) in _UNTYPED:
        types: list[Any] = [pyarrow.string()] * len(table.names)
    else:  # the type of a column depends on all its cells, so the file is read twice; prediction takes far longer
        types, table = _infer_types(table), reopen()
    types[text_at] = pyarrow.string()
    written = [pyarrow.string() if kind is None else kind for kind in types]
    schema = pyarrow.schema(list(zip(table.names, written, strict=True)))

    def batches() -> Iterator[tuple[pyarrow.RecordBatch, list[str]]]:
        while chunk := list(islice(table.rows, ROWS)):
            texts = [read_text(table, number, row[text_at], text_at) for number, row in chunk]
            columns = _transpose(chunk, len(types))
            columns[text_at] = texts
            try:
                arrays = [_array(cells, kind) for cells, kind in zip(columns, types, strict=True)]
            except (pyarrow.ArrowException, OverflowError) as error:
                raise DataFileError(f"{path}, {table.place} {chunk[0][0]} or soon after: {error}") from None
            yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema), texts

    return Shard(path, schema, batches())


def _infer_types(table: Table) -> list[Any]:
    """Return the type of each column over all rows; None if its cells have no common type."""
    types: list[Any] = [pyarrow.null()] * len(table.names)
    while chunk := list(islice(table.rows, ROWS)):
        for at, cells in enumerate(_transpose(chunk, len(types))):
            types[at] = None if types[at] is None else _common_type(types[at], cells)
    return types


def _common_type(kind: Any, cells: Sequence[Any]) -> Any:
    try:
        parts = [pyarrow.schema([("x", one)]) for one in (kind, pyarrow.array(cells).type)]
        return pyarrow.unify_schemas(parts, promote_options="permissive").field(0).type
    except (pyarrow.ArrowException, OverflowError, UnicodeEncodeError):
        return None


def _transpose(chunk: Iterable[tuple[int, Sequence[Any]]], n: int) -> list[Sequence[Any]]:
    return [[None if isinstance(row[at], Absent) else row[at] for _, row in chunk] for at in range(n)]


def _array(cells: Sequence[Any], kind: Any) -> Any:
    """Return cells as an array, encoded as JSON if they have no common type."""
    if kind is None:
        return pyarrow.array([None if cell is None else json.dumps(cell, default=str) for cell in cells], "string")
    try:
        return pyarrow.array(cells, kind)
    except UnicodeEncodeError:  # a lone surrogate
        return pyarrow.array([cell.encode("utf-8", "replace").decode() for cell in cells], kind)
