"""Data files → documents and labels.

CSV, TSV, JSON lines and Parquet; a folder with one folder of text files per class; plain text with one document
a line. `.gz`, `.xz` and `.zip` are read as they are. A file that cannot be read is told by name and line.
"""

import csv
import gzip
import io
import json
import lzma
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mpad.errors import DataFileError

TEXT_NAMES = ("text", "document", "sentence", "review", "content", "body", "comment")
LABEL_NAMES = ("label", "class", "category", "target", "y", "sentiment")
_PACKED = {".gz", ".xz", ".zip"}
csv.field_size_limit(1 << 30)  # a document may be long


@dataclass(frozen=True)
class Documents:
    """Texts, with their labels where the source has them."""

    texts: list[str]
    labels: list[str] | None = None

    def __len__(self) -> int:
        return len(self.texts)


def read_documents(
    path: str | Path, text: str | None = None, label: str | None = None, need_labels: bool = True
) -> Documents:
    """Read a file or folder; `text` and `label` name the columns where the guess would be wrong."""
    path = Path(path)
    if not path.exists():
        raise DataFileError(f"{path}: no such file or folder")
    if path.is_dir():
        return _folder(path)
    kind = _kind(path)
    if kind == ".parquet":
        return _parquet(path, text, label, need_labels)
    content = decode(str(path), unpacked(path))
    if kind == ".txt":
        if need_labels:
            raise DataFileError(
                f"{path}: plain text has no labels; expected .csv, .tsv, .jsonl, .parquet or a folder of class folders"
            )
        return Documents(split_lines(content))
    if kind in (".jsonl", ".ndjson", ".json"):
        return _json_lines(path, content, text, label, need_labels)
    return _delimited(path, content, "\t" if kind in (".tsv", ".tab") else ",", text, label, need_labels)


def split_lines(content: str) -> list[str]:
    """One document a line, empty lines included: as many answers as lines."""
    lines = content.split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kinds = [suffix for suffix in suffixes if suffix not in _PACKED]
    kind = kinds[-1] if kinds else ""
    if kind == "" and suffixes[-1:] == [".zip"]:
        try:
            with zipfile.ZipFile(path) as archive:
                return _kind(Path(_only_member(path, archive)))
        except zipfile.BadZipFile as error:
            raise DataFileError(f"{path}: cannot be unpacked: {error}") from None
    if kind not in (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet", ".txt"):
        raise DataFileError(
            f"{path}: expected .csv, .tsv, .jsonl, .parquet or .txt (also as .gz, .xz or .zip), or a folder of "
            f"class folders; '{kind}' is none of these"
        )
    return kind


def _only_member(path: Path, archive: zipfile.ZipFile) -> str:
    members = [name for name in archive.namelist() if not name.endswith("/") and "__MACOSX" not in name]
    if len(members) != 1:
        raise DataFileError(f"{path}: expected one file inside, found {len(members)}; unpack it and name the file")
    return members[0]


def unpacked(path: Path) -> bytes:
    """The content of a file, whatever it is packed as."""
    try:
        match path.suffix.lower():
            case ".gz":
                return gzip.decompress(path.read_bytes())
            case ".xz":
                return lzma.decompress(path.read_bytes())
            case ".zip":
                with zipfile.ZipFile(path) as archive:
                    return archive.read(_only_member(path, archive))
            case _:
                return path.read_bytes()
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise DataFileError(f"{path}: cannot be unpacked: {error}") from None


def decode(source: str, data: bytes) -> str:
    """Read bytes as UTF-8, or say in which line of the source they are not."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataFileError(
            f"{source}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8; convert the file "
            "(iconv -f LATIN1 -t UTF-8)"
        ) from None


def _delimited(
    path: Path, content: str, delimiter: str, text: str | None, label: str | None, need_labels: bool
) -> Documents:
    # A tab-separated file is taken literally, quotes and all: that is how corpora are passed around.
    quoting: Literal[0, 3] = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, quoting=quoting, strict=True)
    rows = _numbered(path, reader)
    _, header = next(rows, (1, []))
    if not header:
        raise DataFileError(f"{path}: the file is empty; expected a line of column names, then a document a line")
    names = [name.strip() for name in header]
    headless = delimiter == "\t" and len(names) == 2 and text is None and label is None and not _has_names(names)
    if headless:
        names = ["label", "text"]  # label<TAB>text without a header, the form of many corpora
    text_at, label_at = _columns(path, names, text, label, need_labels)
    texts, labels = [], []
    if headless:
        rows = _chain((1, header), rows)
    for line, row in rows:
        if not row:
            continue
        if len(row) != len(names):
            raise DataFileError(
                f"{path}, line {line}: expected {len(names)} fields, found {len(row)}; "
                f"is '{delimiter if delimiter != chr(9) else 'tab'}' the delimiter, and are texts that hold it quoted?"
            )
        texts.append(row[text_at])
        if label_at is not None:
            labels.append(_present(path, line, row[label_at]))
    return Documents(texts, labels if label_at is not None else None)


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


def _chain(first: tuple[int, list[str]], rest: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    yield first
    yield from rest


def _has_names(names: Sequence[str]) -> bool:
    return any(name.lower() in (*TEXT_NAMES, *LABEL_NAMES) for name in names)


def _columns(
    path: Path, names: Sequence[str], text: str | None, label: str | None, need_labels: bool
) -> tuple[int, int | None]:
    text_at = _column(path, names, text, TEXT_NAMES, "--text")
    if text_at is None:
        raise DataFileError(
            f"{path}: no column of text among {', '.join(names)}; name it with --text (text=... in Python)"
        )
    label_at = _column(path, names, label, LABEL_NAMES, "--label")
    if label_at is None and need_labels:
        raise DataFileError(
            f"{path}: no column of labels among {', '.join(names)}; name it with --label (label=... in Python)"
        )
    if label_at == text_at and need_labels:
        raise DataFileError(f"{path}: column '{names[text_at]}' cannot be both text and label; name them apart")
    return text_at, label_at


def _column(path: Path, names: Sequence[str], name: str | None, guesses: Sequence[str], option: str) -> int | None:
    if name is not None:
        if name not in names:
            raise DataFileError(f"{path}: no column '{name}' for {option} (there are: {', '.join(names)})")
        return list(names).index(name)
    lowered = [other.lower() for other in names]
    return next((lowered.index(guess) for guess in guesses if guess in lowered), None)


def _json_lines(path: Path, content: str, text: str | None, label: str | None, need_labels: bool) -> Documents:
    texts: list[str] = []
    labels: list[str] = []
    text_name: str | None = text
    label_name: str | None = label
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataFileError(f"{path}, line {number}: not JSON: {error.msg} (column {error.colno})") from None
        if not isinstance(record, dict):
            raise DataFileError(
                f"{path}, line {number}: expected a JSON object, found {type(record).__name__}; "
                "JSON lines hold one object a line"
            )
        if not texts:
            names = list(record)
            text_at, label_at = _columns(path, names, text, label, need_labels)
            text_name, label_name = names[text_at], None if label_at is None else names[label_at]
        for name in (text_name, label_name):
            if name is not None and name not in record:
                raise DataFileError(f"{path}, line {number}: no '{name}' in this object (it has: {', '.join(record)})")
        if not isinstance(record[text_name], str):
            raise DataFileError(f"{path}, line {number}: '{text_name}' is not a string: {record[text_name]!r}")
        texts.append(record[text_name])
        if label_name is not None:
            labels.append(_present(path, number, record[label_name]))
    return Documents(texts, labels if label_name is not None else None)


def _parquet(path: Path, text: str | None, label: str | None, need_labels: bool) -> Documents:
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(unpacked(path)))
        names = file.schema_arrow.names
        text_at, label_at = _columns(path, names, text, label, need_labels)
        wanted = [names[text_at]] + ([] if label_at is None else [names[label_at]])
        table = file.read(columns=wanted)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataFileError(f"{path}: not a Parquet file: {error}") from None
    texts = ["" if value is None else str(value) for value in table.column(wanted[0]).to_pylist()]
    if label_at is None:
        return Documents(texts)
    labels = table.column(wanted[1]).to_pylist()
    return Documents(texts, [_present(path, row, value) for row, value in enumerate(labels, start=1)])


def _present(path: Path, line: int, label: object) -> str:
    if label is None or not str(label).strip():
        raise DataFileError(f"{path}, line {line}: the label is missing; drop the row or label it")
    return str(label)


def _folder(path: Path) -> Documents:
    classes = sorted(folder for folder in path.iterdir() if folder.is_dir() and not folder.name.startswith("."))
    if not classes:
        raise DataFileError(f"{path}: expected a folder for each class with a text file for each document")
    texts, labels = [], []
    for folder in classes:
        for file in sorted(file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".")):
            texts.append(decode(str(file), unpacked(file)))
            labels.append(folder.name)
    if not texts:
        raise DataFileError(f"{path}: its class folders ({', '.join(f.name for f in classes)}) hold no files")
    return Documents(texts, labels)
