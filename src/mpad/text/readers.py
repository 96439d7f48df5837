"""Data files → documents and labels.

CSV (with commas, semicolons, tabs or bars), TSV, JSON lines, a JSON array and Parquet; a folder with one folder of text
files per class; plain text with one document a line. `.gz`, `.xz` and `.zip` are read as they are, within the limits of
`mpad.io.archives`; UTF-16 where its byte-order mark says so. A file that cannot be read is told by name and line.
"""

import csv
import io
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mpad.errors import DataFileError
from mpad.io.archives import LIMITS, PACKED, TooLarge, only_member, refused, unpacked
from mpad.io.encoding import decode, split_lines
from mpad.io.safe_json import parse_json

TEXT_NAMES = ("text", "document", "sentence", "review", "content", "body", "comment")
LABEL_NAMES = ("label", "class", "category", "target", "y", "sentiment")
_DELIMITERS = (",", ";", "\t", "|")
_ROWS = 256  # of a Parquet file, read together: a dictionary can make a row many times larger than on disk
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
    if not path.is_file():
        raise DataFileError(f"{path}: not a regular file; write what it gives to a file first")
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
        return _json(path, content, text, label, need_labels)
    wanted = [name for name in (text, label) if name is not None]
    delimiter = "\t" if kind in (".tsv", ".tab") else _delimiter(content, wanted)
    # A tab-separated file is taken literally, quotes and all: that is how corpora are passed around.
    literal = kind in (".tsv", ".tab")
    return _delimited(path, content, delimiter, literal, text, label, need_labels)


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kinds = [suffix for suffix in suffixes if suffix not in PACKED]
    kind = kinds[-1] if kinds else ""
    if kind == "" and suffixes[-1:] == [".zip"]:
        with refused(path), zipfile.ZipFile(path) as archive:
            return _kind(Path(only_member(path, archive)))
    if kind not in (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet", ".txt"):
        raise DataFileError(
            f"{path}: expected .csv, .tsv, .jsonl, .parquet or .txt (also as .gz, .xz or .zip), or a folder of "
            f"class folders; '{kind}' is none of these"
        )
    return kind


def _delimiter(content: str, wanted: Sequence[str]) -> str:
    """What parts the fields of a CSV file, by its line of names: what makes known names, else most of them."""
    header = content.partition("\n")[0].rstrip("\r")
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


def _delimited(
    path: Path, content: str, delimiter: str, literal: bool, text: str | None, label: str | None, need_labels: bool
) -> Documents:
    quoting: Literal[0, 3] = csv.QUOTE_NONE if literal else csv.QUOTE_MINIMAL
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, quoting=quoting, strict=True)
    rows = _numbered(path, reader)
    _, header = next(rows, (1, []))
    if not header:
        raise DataFileError(f"{path}: the file is empty; expected a line of column names, then a document a line")
    names = [name.strip() for name in header]
    headless = literal and len(names) == 2 and text is None and label is None and not _has_names(names)
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
            f"{path}: no column of text among {_listed(names)}; name it with --text (text=... in Python)"
        )
    label_at = _column(path, names, label, LABEL_NAMES, "--label")
    if label_at is None and need_labels:
        raise DataFileError(
            f"{path}: no column of labels among {_listed(names)}; name it with --label (label=... in Python)"
        )
    if label_at == text_at and need_labels:
        raise DataFileError(f"{path}: column '{names[text_at]}' cannot be both text and label; name them apart")
    return text_at, label_at


def _column(path: Path, names: Sequence[str], name: str | None, guesses: Sequence[str], option: str) -> int | None:
    if name is not None:
        if name not in names:
            raise DataFileError(f"{path}: no column '{name}' for {option} (there are: {_listed(names)})")
        result = name
    else:
        lowered = [other.lower() for other in names]
        places = [lowered.index(guess) for guess in guesses if guess in lowered]
        if not places:
            return None
        result = names[places[0]]
    if list(names).count(result) > 1:
        raise DataFileError(f"{path}: {list(names).count(result)} columns are named '{result}'; rename all but one")
    return list(names).index(result)


def _listed(names: Sequence[str]) -> str:
    """Names for a message; of very many, the first."""
    return ", ".join(name[:60] for name in names[:20]) + (f" … ({len(names):,} in all)" if len(names) > 20 else "")


def _json(path: Path, content: str, text: str | None, label: str | None, need_labels: bool) -> Documents:
    """JSON lines, or one array of objects."""
    texts: list[str] = []
    labels: list[str] = []
    text_name: str | None = text
    label_name: str | None = label
    place = "item" if content.lstrip()[:1] == "[" else "line"
    for number, record in _json_array(path, content) if place == "item" else _json_lines(path, content):
        if not isinstance(record, dict):
            raise DataFileError(
                f"{path}, {place} {number}: expected a JSON object, found {type(record).__name__}; "
                "JSON lines hold one object a line"
            )
        if not texts:
            names = list(record)
            text_at, label_at = _columns(path, names, text, label, need_labels)
            text_name, label_name = names[text_at], None if label_at is None else names[label_at]
        for name in (text_name, label_name):
            if name is not None and name not in record:
                raise DataFileError(
                    f"{path}, {place} {number}: no '{name}' in this object (it has: {_listed(list(record))})"
                )
        if not isinstance(record[text_name], str):
            raise DataFileError(f"{path}, {place} {number}: '{text_name}' is not a string: {record[text_name]!r:.60}")
        texts.append(record[text_name])
        if label_name is not None:
            labels.append(_present(path, number, record[label_name], place))
    return Documents(texts, labels if label_name is not None else None)


def _json_lines(path: Path, content: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(content.split("\n"), start=1):
        if line.strip():
            wrong = f"{path}, line {number}: not JSON: "
            yield number, parse_json(line, lambda said, wrong=wrong: DataFileError(wrong + said))  # type: ignore[misc]


def _json_array(path: Path, content: str) -> Iterable[tuple[int, Any]]:
    return enumerate(parse_json(content, lambda said: DataFileError(f"{path}: not JSON: {said}")), start=1)


def _parquet(path: Path, text: str | None, label: str | None, need_labels: bool) -> Documents:
    import pyarrow
    import pyarrow.parquet

    texts: list[str] = []
    labels: list[str] = []
    held, most = 0, LIMITS.most(path.stat().st_size)
    try:
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(unpacked(path)))
        names = file.schema_arrow.names
        text_at, label_at = _columns(path, names, text, label, need_labels)
        kind = file.schema_arrow.field(text_at).type
        if str(kind) not in ("string", "large_string", "string_view", "null") and "values=string" not in str(kind):
            raise DataFileError(f"{path}: column '{names[text_at]}' holds {kind}, not text; name another with --text")
        wanted = [names[text_at]] + ([] if label_at is None else [names[label_at]])
        for batch in file.iter_batches(_ROWS, columns=wanted):
            own = ["" if value is None else value for value in batch.column(wanted[0]).to_pylist()]
            held += sum(map(len, own))  # of a dictionary, each time that it is named
            if held > most:
                raise TooLarge(f"{path}: unpacks to more than {most:,} bytes of text, too much for a file of its size")
            texts += own
            if label_at is not None:
                result = batch.column(wanted[1]).to_pylist()
                labels += [_present(path, len(labels) + k, value, "row") for k, value in enumerate(result, start=1)]
    except UnicodeDecodeError:
        raise DataFileError(
            f"{path}: row {len(texts) + 1} or one soon after it holds bytes that are not UTF-8"
        ) from None
    except (pyarrow.ArrowException, OSError, MemoryError) as error:
        said = " ".join(str(error).split())[:200]
        raise DataFileError(f"{path}: not a Parquet file that can be read: {said}") from None
    return Documents(texts, None if label_at is None else labels)


def _present(path: Path, line: int, label: object, place: str = "line") -> str:
    if label is None or label != label or not str(label).strip():
        raise DataFileError(f"{path}, {place} {line}: the label is missing; drop the row or label it")
    if not isinstance(label, (str, int, float)):
        raise DataFileError(
            f"{path}, {place} {line}: the label is {type(label).__name__}, {label!r:.60}; expected a string or a number"
        )
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
