"""Data files → tables: column names, then one row per document.

CSV (with commas, semicolons, tabs or bars), TSV, JSON lines, a JSON array, Parquet, Excel. `.gz`, `.xz` and `.zip` are
read within the limits of `mpad.files.archives`; UTF-16 is recognized by its byte-order mark. Errors name the file and
the line.
"""

import csv
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from mpad.errors import DataFileError
from mpad.extras import require
from mpad.files.archives import (
    LIMITS,
    PACKED,
    TooLarge,
    can_stream,
    only_member,
    open_stream,
    read_unpacked,
    translate_errors,
)
from mpad.files.encoding import decode, decoded_lines
from mpad.files.safe_json import parse_json

# The web app (static/csv.js) has the same lists. The first name of each takes precedence over all others.
TEXT_NAMES = (
    *("text", "document", "sentence", "review", "content", "body", "comment", "tweet", "message", "description"),
    *("abstract", "article", "post", "question", "utterance", "headline", "snippet", "review_text", "review_body"),
)
LABEL_NAMES = (
    *("label", "labels", "class", "category", "target", "y", "sentiment", "tags", "stars", "rating", "score", "topic"),
    *("intent", "polarity", "emotion", "kind"),
)
KINDS = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx", ".txt")
_DELIMITERS = (",", ";", "\t", "|")
_EXCEL_ROWS = 1 << 20
_ROWS = 256  # of Parquet per batch: a dictionary can make a row many times larger than on disk
_STREAMED_ROWS = 4096  # of Parquet per batch, of mapped files
csv.field_size_limit(1 << 30)  # a document may be long


@dataclass(frozen=True)
class Absent:
    """A cell of a JSON object that lacks the key of the column."""

    keys: tuple[str, ...]  # that the object has


@dataclass(frozen=True)
class Table:
    """Rows as they are read, each with its number in the file."""

    path: Path
    names: list[str]
    rows: Iterator[tuple[int, Sequence[Any]]]
    place: str = "line"  # what the number counts
    types: Mapping[str, str] = field(default_factory=dict)  # type of each column, if the file has them


JOIN = " + "  # between the names of columns that are read as one, such as "title + body"


def open_table(path: Path, wanted: Sequence[str | None], streamed: bool = False) -> Table:
    """Open a file; `wanted` are the columns that the user named, None for those that are guessed.

    A name such as "title + body" that no column has stands for these columns, joined: it becomes the last column. With
    `streamed`, memory does not grow with the file if its format can be read line by line; errors further down are
    then raised when their row is reached.
    """
    table = _open(path, [part for name in wanted if name is not None for part in name.split(JOIN)], streamed)
    for name in wanted:
        parts = [] if name is None or name in table.names else name.split(JOIN)
        if name is not None and len(parts) > 1 and all(table.names.count(part) == 1 for part in parts):
            table = _with_joined(table, name, [table.names.index(part) for part in parts])
    return table


def _with_joined(table: Table, name: str, places: Sequence[int]) -> Table:
    """Return the table with a last column that joins others by a line break; an empty or missing cell is left out."""

    def join(row: Sequence[Any]) -> str:
        cells = (row[at] for at in places if at < len(row))
        return "\n".join(str(cell) for cell in cells if not isinstance(cell, Absent) and cell not in (None, ""))

    rows = ((number, [*row, join(row)]) for number, row in table.rows)
    return replace(table, names=[*table.names, name], rows=rows)


def _open(path: Path, wanted: Sequence[str], streamed: bool) -> Table:
    kind = kind_of(path)
    if kind == ".parquet":
        return read_parquet(path)
    if kind == ".xlsx":
        return _read_excel(path)
    # In tab-separated files quotes are ordinary characters, as in most published corpora.
    literal = kind in (".tsv", ".tab")
    delimited = literal or kind == ".csv"
    lines = _read_lines(path, "" if delimited else "\n", streamed and kind != ".json")
    if kind == ".txt":
        texts = ([line.removesuffix("\n").removesuffix("\r")] for line in lines)
        return Table(path, ["text"], enumerate(texts, start=1))
    if not delimited:
        return _read_json(path, lines)
    header = next(lines, "")
    delimiter = "\t" if literal else _guess_delimiter(header, wanted)
    return _read_delimited(path, chain([header], lines), delimiter, literal, headless=not wanted)


def _read_lines(path: Path, newline: str, streamed: bool) -> Iterator[str]:
    """Return the lines of a file with their ends; unless streamed, the file is decoded before the first line."""
    if not (streamed and can_stream(path)):
        return iter(io.StringIO(decode(str(path), read_unpacked(path)), newline=newline))

    def stream_lines() -> Iterator[str]:
        with translate_errors(path):
            yield from decoded_lines(str(path), open_stream(path), newline)

    return stream_lines()


def kind_of(path: Path) -> str:
    """Return the extension of a file's format, without that of its compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kinds = [suffix for suffix in suffixes if suffix not in PACKED]
    kind = kinds[-1] if kinds else ""
    if kind == "" and suffixes[-1:] == [".zip"]:
        with translate_errors(path), zipfile.ZipFile(path) as archive:
            return kind_of(Path(only_member(path, archive)))
    if kind not in KINDS:
        raise DataFileError(
            f"{path}: expected .csv, .tsv, .jsonl, .parquet, .xlsx or .txt (also as .gz, .xz or .zip), or a folder of "
            f"class folders; '{kind}' is none of these"
        )
    return kind


def _has_names(names: Sequence[str]) -> bool:
    """Return whether a line has a common column name."""
    return any(name.lower() in TEXT_NAMES + LABEL_NAMES for name in names)


def _guess_delimiter(header: str, wanted: Sequence[str]) -> str:
    """Guess the delimiter of a CSV file from its header: the one that gives known names, else the most fields."""
    header = header.rstrip("\r\n")
    fields = {}
    for delimiter in _DELIMITERS:
        try:
            fields[delimiter] = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
        except csv.Error:
            continue
    for delimiter, names in fields.items():
        if all(name in names for name in wanted) and (wanted or _has_names(names)) and len(names) > 1:
            return delimiter
    return max(fields, key=lambda delimiter: len(fields[delimiter]), default=",")


def _read_delimited(path: Path, lines: Iterable[str], delimiter: str, literal: bool, headless: bool) -> Table:
    quoting: Literal[0, 3] = csv.QUOTE_NONE if literal else csv.QUOTE_MINIMAL
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    rows = _number_rows(path, reader)
    first = next(rows, (1, []))
    if not first[1]:
        raise DataFileError(f"{path}: the file is empty; expected a line of column names, then a document per line")
    names = [name.strip() for name in first[1]]
    if headless and literal and len(names) == 2 and not _has_names(names):
        names, rows = ["label", "text"], chain([first], rows)  # label<TAB>text, common in published corpora

    def checked() -> Iterator[tuple[int, Sequence[Any]]]:
        for line, row in rows:
            if row and len(row) != len(names):
                sign = delimiter if delimiter != "\t" else "tab"
                raise DataFileError(
                    f"{path}, line {line}: expected {len(names)} fields, found {len(row)}; "
                    f"is '{sign}' the delimiter, and are texts that hold it quoted?"
                )
            if row:
                yield line, row

    return Table(path, names, checked())


def _number_rows(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataFileError(f"{path}, line {line}: {error}") from None


def _read_json(path: Path, lines: Iterator[str]) -> Table:
    """Read JSON lines, or one array of objects; the first object names the columns."""
    filled = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    first_line = next(filled, None)
    if first_line is None:
        return Table(path, [], iter(()))
    values: Iterable[tuple[int, Any]]
    if first_line[1].lstrip().startswith("["):
        content, place = first_line[1] + "".join(lines), "item"
        values = enumerate(parse_json(content, lambda reason: DataFileError(f"{path}: not JSON: {reason}")), start=1)
    else:
        values, place = _parse_lines(path, chain([first_line], filled)), "line"
    records = _check_objects(path, values, place)
    first = next(records, None)
    if first is None:
        return Table(path, [], iter(()), place)
    names = list(first[1])
    rows = (
        (number, [record.get(name, Absent(tuple(record))) for name in names])
        for number, record in chain([first], records)
    )
    return Table(path, names, rows, place)


def _parse_lines(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Any]]:
    for number, line in lines:
        wrong = f"{path}, line {number}: not JSON: "
        yield number, parse_json(line.removesuffix("\n"), lambda reason, wrong=wrong: DataFileError(wrong + reason))  # type: ignore[misc]


def _check_objects(path: Path, values: Iterable[tuple[int, Any]], place: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, record in values:
        if not isinstance(record, dict):
            raise DataFileError(
                f"{path}, {place} {number}: expected a JSON object, found {type(record).__name__}; "
                "JSON lines hold one object per line"
            )
        yield number, record


def read_parquet(path: Path, row_groups: range | None = None) -> Table:
    """Open a Parquet file as a table: all of it in memory, or some row groups, mapped from the disk."""
    mapped = row_groups is not None
    file = open_parquet(path, streamed=mapped, memory_map=mapped)
    most = LIMITS.most(path.stat().st_size)

    def rows() -> Iterator[tuple[int, Sequence[Any]]]:
        first = 0 if row_groups is None else row_groups.start
        number, held = sum(file.metadata.row_group(group).num_rows for group in range(first)), 0
        batches = file.iter_batches(_STREAMED_ROWS if mapped else _ROWS, None if row_groups is None else [*row_groups])
        try:
            with parquet_errors(path):
                for batch in batches:
                    cells = [column.to_pylist() for column in batch.columns]
                    if not mapped:
                        held += sum(len(cell) for column in cells for cell in column if isinstance(cell, str))
                    if held > most:  # each use of a dictionary's entry counts
                        raise TooLarge(
                            f"{path}: unpacks to more than {most:,} bytes of text, too much for a file of its size"
                        )
                    for row in zip(*cells, strict=True):
                        number += 1
                        yield number, row
        except UnicodeDecodeError:
            raise DataFileError(
                f"{path}: row {number + 1} or one soon after it holds bytes that are not UTF-8"
            ) from None

    schema = file.schema_arrow
    return Table(path, schema.names, rows(), "row", {column.name: str(column.type) for column in schema})


def open_parquet(path: Path, streamed: bool = False, **options: Any) -> Any:
    """Open a Parquet file with pyarrow's `options`; unless `streamed`, or if packed, it is read into memory first."""
    import pyarrow.parquet

    with parquet_errors(path):
        in_place = streamed and path.suffix.lower() == ".parquet"
        source = path if in_place else pyarrow.BufferReader(read_unpacked(path))
        return pyarrow.parquet.ParquetFile(source, **options)


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """Turn errors of pyarrow into one that names the file."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, MemoryError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataFileError(f"{path}: not a Parquet file that can be read: {reason}") from None


def _read_excel(path: Path) -> Table:
    """Read the first sheet. Its cells are counted, because the size in its header may be wrong."""
    openpyxl = require("openpyxl", extra="excel")
    try:
        data = read_unpacked(path)
        most = LIMITS.most(len(data))
        with zipfile.ZipFile(io.BytesIO(data)) as archive:  # no more than these sizes is ever read
            if sum(member.file_size for member in archive.infolist()) > most:
                raise TooLarge(f"{path}: unpacks to more than {most:,} bytes, too much for a file of its size")
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        book.worksheets[0].reset_dimensions()
        rows = list(_filled_rows(path, book.worksheets[0], most))
    except DataFileError:
        raise
    except Exception as error:  # damaged zips and XML raise many kinds of errors
        raise DataFileError(f"{path}: not an Excel file that can be read: {error}") from None
    if not rows or rows[0][0] != 1:
        raise DataFileError(f"{path}: the first row is empty; expected column names there, then a document per row")
    names = ["" if cell is None else str(cell).strip() for cell in rows[0][1]]
    padding = (None,) * len(names)
    return Table(path, names, ((number, (*row, *padding)[: len(names)]) for number, row in rows[1:]), "row")


def _filled_rows(path: Path, sheet: Any, most: int) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield non-empty rows with their numbers, within Excel's limits and ours."""
    held = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        if number > _EXCEL_ROWS:
            raise TooLarge(f"{path}: has a row beyond {_EXCEL_ROWS:,}, the last that Excel has")
        if any(cell is not None for cell in row):
            held += sum(len(cell) if isinstance(cell, str) else 8 for cell in row)
            if held > most:
                raise TooLarge(f"{path}: holds more than {most:,} characters, too much for a file of its size")
            yield number, row
