"""Data files → rows: a line of names, then a row a document.

CSV (with commas, semicolons, tabs or bars), TSV, JSON lines, a JSON array, Parquet, Excel. `.gz`, `.xz` and `.zip` are
read within the limits of `mpad.files.archives`; UTF-16 is recognized by its byte-order mark. An unreadable file is
reported by name and line.
"""

import csv
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from mpad.errors import DataFileError
from mpad.extras import require
from mpad.files.archives import LIMITS, PACKED, TooLarge, only_member, open_stream, refused, streams, unpacked
from mpad.files.encoding import decode, decoded_lines
from mpad.files.safe_json import parse_json

KINDS = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx", ".txt")
_DELIMITERS = (",", ";", "\t", "|")
_EXCEL_ROWS = 1 << 20
_ROWS = 256  # of a Parquet file, read together: a dictionary can make a row many times larger than on disk
csv.field_size_limit(1 << 30)  # a document may be long


@dataclass(frozen=True)
class Absent:
    """Stands in a row for what an object of JSON does not have."""

    there: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Rows as they are read, each with the number by which people find it."""

    path: Path
    names: list[str]
    rows: Iterator[tuple[int, Sequence[Any]]]
    place: str = "line"  # what the number counts
    types: Mapping[str, str] = field(default_factory=dict)  # of columns, where the file says them


def open_table(path: Path, wanted: Sequence[str], known: Sequence[str], streamed: bool = False) -> Table:
    """Open a file; `wanted` are columns that somebody named, `known` names that columns often have.

    Streamed, memory does not grow with the file, if its form lets it be read line by line. What is wrong further down
    is then said later: at its row.
    """
    kind = kind_of(path)
    if kind == ".parquet":
        return _parquet(path)
    if kind == ".xlsx":
        return _excel(path)
    # A tab-separated file is taken literally, quotes and all: that is how corpora are passed around.
    literal = kind in (".tsv", ".tab")
    delimited = literal or kind == ".csv"
    lines = _lines(path, "" if delimited else "\n", streamed and kind != ".json")
    if kind == ".txt":
        return Table(path, ["text"], ((line, [text]) for line, text in enumerate(map(_without_end, lines), 1)))
    if not delimited:
        return _json(path, lines)
    header = next(lines, "")
    delimiter = "\t" if literal else _delimiter(header, wanted, known)
    return _delimited(path, chain([header], lines), delimiter, literal, headless=not wanted, known=known)


def _lines(path: Path, newline: str, streamed: bool) -> Iterator[str]:
    """Lines of a file with their ends, all of it decoded before the first is given, unless it is streamed."""
    if not (streamed and streams(path)):
        return iter(io.StringIO(decode(str(path), unpacked(path)), newline=newline))

    def as_they_come() -> Iterator[str]:
        with refused(path):
            yield from decoded_lines(str(path), open_stream(path), newline)

    return as_they_come()


def _without_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def kind_of(path: Path) -> str:
    """The ending that says what a file holds, packed or not."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kinds = [suffix for suffix in suffixes if suffix not in PACKED]
    kind = kinds[-1] if kinds else ""
    if kind == "" and suffixes[-1:] == [".zip"]:
        with refused(path), zipfile.ZipFile(path) as archive:
            return kind_of(Path(only_member(path, archive)))
    if kind not in KINDS:
        raise DataFileError(
            f"{path}: expected .csv, .tsv, .jsonl, .parquet, .xlsx or .txt (also as .gz, .xz or .zip), or a folder of "
            f"class folders; '{kind}' is none of these"
        )
    return kind


def has_names(names: Sequence[str], known: Sequence[str]) -> bool:
    """Whether any of a line's cells is a name that columns often have."""
    return any(name.lower() in known for name in names)


def _delimiter(header: str, wanted: Sequence[str], known: Sequence[str]) -> str:
    """What parts the fields of a CSV file, by its line of names: what makes known names, else most of them."""
    header = header.rstrip("\r\n")
    fields = {}
    for delimiter in _DELIMITERS:
        try:
            fields[delimiter] = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
        except csv.Error:
            continue
    for delimiter, names in fields.items():
        if all(name in names for name in wanted) and (wanted or has_names(names, known)) and len(names) > 1:
            return delimiter
    return max(fields, key=lambda delimiter: len(fields[delimiter]), default=",")


def _delimited(
    path: Path, lines: Iterable[str], delimiter: str, literal: bool, headless: bool, known: Sequence[str]
) -> Table:
    quoting: Literal[0, 3] = csv.QUOTE_NONE if literal else csv.QUOTE_MINIMAL
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    rows = _numbered(path, reader)
    first = next(rows, (1, []))
    if not first[1]:
        raise DataFileError(f"{path}: the file is empty; expected a line of column names, then a document a line")
    names = [name.strip() for name in first[1]]
    if headless and literal and len(names) == 2 and not has_names(names, known):
        names, rows = ["label", "text"], chain([first], rows)  # label<TAB>text, the form of many corpora

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


def _numbered(path: Path, reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    line = 1
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataFileError(f"{path}, line {line}: {error}") from None
        yield line, row
        line = reader.line_num + 1  # type: ignore[attr-defined]


def _json(path: Path, lines: Iterator[str]) -> Table:
    """JSON lines, or one array of objects; the first object names the columns."""
    blank = 0
    for first_line in lines:
        if first_line.strip():
            break
        blank += 1
    else:
        return Table(path, [], iter(()))
    lines = chain([first_line], lines)
    place = "item" if first_line.lstrip().startswith("[") else "line"
    values = _json_array(path, "".join(lines)) if place == "item" else _json_lines(path, lines, blank + 1)
    records = _objects(path, values, place)
    first = next(records, None)
    if first is None:
        return Table(path, [], iter(()), place)
    names = list(first[1])
    rows = (
        (number, [record.get(name, Absent(tuple(record))) for name in names])
        for number, record in chain([first], records)
    )
    return Table(path, names, rows, place)


def _objects(path: Path, values: Iterable[tuple[int, Any]], place: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, record in values:
        if not isinstance(record, dict):
            raise DataFileError(
                f"{path}, {place} {number}: expected a JSON object, found {type(record).__name__}; "
                "JSON lines hold one object a line"
            )
        yield number, record


def _json_lines(path: Path, lines: Iterable[str], start: int) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(lines, start=start):
        if line.strip():
            wrong = f"{path}, line {number}: not JSON: "
            yield number, parse_json(line.removesuffix("\n"), lambda said, wrong=wrong: DataFileError(wrong + said))  # type: ignore[misc]


def _json_array(path: Path, content: str) -> Iterable[tuple[int, Any]]:
    return enumerate(parse_json(content, lambda said: DataFileError(f"{path}: not JSON: {said}")), start=1)


def _parquet(path: Path) -> Table:
    import pyarrow
    import pyarrow.parquet

    def wrong(error: Exception) -> DataFileError:
        said = " ".join(str(error).split())[:200]
        return DataFileError(f"{path}: not a Parquet file that can be read: {said}")

    def rows() -> Iterator[tuple[int, Sequence[Any]]]:
        number, held = 0, 0
        try:
            for batch in file.iter_batches(_ROWS):
                cells = [column.to_pylist() for column in batch.columns]
                held += sum(len(cell) for column in cells for cell in column if isinstance(cell, str))
                if held > most:  # of a dictionary, each time that it is named
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
        except (pyarrow.ArrowException, OSError, MemoryError) as error:
            raise wrong(error) from None

    most = LIMITS.most(path.stat().st_size)
    try:
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(unpacked(path)))
        schema = file.schema_arrow
    except (pyarrow.ArrowException, OSError, MemoryError) as error:
        raise wrong(error) from None
    return Table(path, schema.names, rows(), "row", {column.name: str(column.type) for column in schema})


def _excel(path: Path) -> Table:
    """Read the first sheet. Its cells are counted: what it says of its own size may be wrong."""
    openpyxl = require("openpyxl", extra="excel")
    try:
        data = unpacked(path)
        most = LIMITS.most(len(data))
        with zipfile.ZipFile(io.BytesIO(data)) as archive:  # no more than these sizes is ever read
            if sum(member.file_size for member in archive.infolist()) > most:
                raise TooLarge(f"{path}: unpacks to more than {most:,} bytes, too much for a file of its size")
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        book.worksheets[0].reset_dimensions()
        rows = list(_filled_rows(path, book.worksheets[0], most))
    except DataFileError:
        raise
    except Exception as error:  # a zip of XML can be wrong in many ways, each with an error of its own
        raise DataFileError(f"{path}: not an Excel file that can be read: {error}") from None
    if not rows or rows[0][0] != 1:
        raise DataFileError(f"{path}: the first row is empty; expected column names there, then a document per row")
    names = ["" if cell is None else str(cell).strip() for cell in rows[0][1]]
    padding = (None,) * len(names)
    return Table(path, names, ((number, (*row, *padding)[: len(names)]) for number, row in rows[1:]), "row")


def _filled_rows(path: Path, sheet: Any, most: int) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Give rows that hold anything, with their numbers, within Excel's own limits and ours."""
    held = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        if number > _EXCEL_ROWS:
            raise TooLarge(f"{path}: has a row beyond {_EXCEL_ROWS:,}, the last that Excel has")
        if any(cell is not None for cell in row):
            held += sum(len(cell) if isinstance(cell, str) else 8 for cell in row)
            if held > most:
                raise TooLarge(f"{path}: holds more than {most:,} characters, too much for a file of its size")
            yield number, row
