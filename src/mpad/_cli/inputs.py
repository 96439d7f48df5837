"""What the commands share about DATA: a file, a folder, a dataset's name, or standard input."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mpad._io.encoding import decode, split_lines
from mpad._text.readers import Documents, Files, read_documents, read_rows
from mpad.datasets.names import NAMES
from mpad.errors import DataFileError, InputError

Data = Annotated[
    str,
    typer.Argument(
        help="CSV, TSV, JSON lines, Parquet, Excel (also .gz, .xz, .zip), several by a pattern in quotes, a folder of "
        f"class folders, or a dataset by name ({', '.join(NAMES)}).",
        show_default=False,
    ),
]
DataFiles = Annotated[
    list[str],
    typer.Argument(
        help="CSV, TSV, JSON lines, Parquet, Excel (also .gz, .xz, .zip), one or several, also by a pattern in quotes; "
        f"a folder of class folders, or a dataset by name ({', '.join(NAMES)}).",
        metavar="DATA...",
        show_default=False,
    ),
]
LabelColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--label", help="Column of the label, guessed if not given; repeated, columns of 0 and 1 for many labels."
    ),
]
Separator = Annotated[str | None, typer.Option(help="Between the labels of a document that has many, such as ';'.")]
TextColumn = Annotated[str | None, typer.Option("--text", help="Column of the text. Guessed if not given.")]
LabelColumn = Annotated[str | None, typer.Option("--label", help="Column of the label. Guessed if not given.")]
OwnTokenizer = Annotated[
    str | None,
    typer.Option("--tokenizer", help="module:function that the model was trained with, if it was one of your own."),
]
ModelFolder = Annotated[Path, typer.Argument(help="Folder of a fitted model.", show_default=False)]


_CHUNK = 2048  # documents that are answered together


def labelled(
    data: Files, text: str | None, label: str | list[str] | None, part: str, separator: str | None = None
) -> tuple[list[str], list[Any]]:
    """Texts and labels of DATA; of a named dataset, the part to train or to test on."""
    if isinstance(data, str) and is_named(data):
        from mpad.datasets import load_dataset

        dataset = load_dataset(data)
        if part == "test" and dataset.cross_validated:
            raise DataFileError(
                f"{data} has no test part: it is meant for cross-validation (mpad reproduce table2 --dataset {data})"
            )
        documents = dataset.train if part == "train" else dataset.test
    else:
        documents = read_documents(data, text, label, separator=separator)
    if not len(documents):
        raise DataFileError(f"{said(data)}: holds no documents")
    return documents.texts, documents.labels or []


def is_named(data: str) -> bool:
    """Whether DATA is a dataset's name, and no file's."""
    return data in NAMES and not Path(data).exists()


def said(data: Files) -> str:
    """DATA in a few words."""
    files = [data] if isinstance(data, (str, Path)) else data
    return Path(files[0]).name + (f" and {len(files) - 1:,} more" if len(files) > 1 else "")


def unlabelled(data: str, text: str | None) -> list[str]:
    """Texts of DATA; '-' is standard input, one document a line."""
    if data == "-":
        return split_lines(decode("standard input", sys.stdin.buffer.read()))
    if is_named(data):
        from mpad.datasets import load_dataset

        return load_dataset(data).test.texts
    documents: Documents = read_documents(data, text, need_labels=False)
    return documents.texts


@dataclass(frozen=True)
class Stream:
    """Rows of DATA as they come, some at a time, with all columns."""

    names: list[str]
    chunks: Iterable[list[Sequence[Any]]]
    text_at: int = 0
    total: int | None = None  # chunks, where that is known


def rows_of(data: str, text: str | None) -> Stream:
    """Rows of DATA; '-' is standard input, one document a line, answered as soon as they are there."""
    if data == "-":
        return Stream(["text"], ([[line] for line in lines] for lines in _lines_as_they_come()))
    if data in NAMES and not Path(data).exists():
        return Stream(["text"], _chunks([[one] for one in unlabelled(data, text)]))
    rows = read_rows(data, text)
    return Stream(rows.names, _chunks(rows.cells), rows.text_at, -(-len(rows.cells) // _CHUNK))


def _chunks(rows: Sequence[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    for start in range(0, len(rows), _CHUNK):
        yield list(rows[start : start + _CHUNK])


def _lines_as_they_come() -> Iterator[list[str]]:
    source: Any = sys.stdin.buffer
    kept = b""
    while data := source.read1(1 << 18):
        if not kept and data[:2] in (b"\xff\xfe", b"\xfe\xff"):  # UTF-16 has no lines of bytes
            yield split_lines(decode("standard input", data + source.read()))
            return
        whole, end, kept = (kept + data).rpartition(b"\n")
        if end:
            yield split_lines(decode("standard input", whole + end))
    if kept:
        yield split_lines(decode("standard input", kept))


def pick_examples(texts: list[str], labels: list[Any], each: int = 3) -> list[tuple[str, str]]:
    """A few documents of each class to show, label and text: of a length that can be read at a glance, if there are."""
    order = sorted(range(len(texts)), key=lambda k: (abs(len(texts[k]) - 160), k))
    taken: dict[str, list[int]] = {}
    for k in order:
        name = ", ".join(labels[k]) if isinstance(labels[k], list) else str(labels[k])
        own = taken.setdefault(name, [])
        if len(own) < each and texts[k].strip():
            own.append(k)
    return [(label, texts[k][:1_000]) for label in sorted(taken) for k in taken[label]]


def given(**options: Any) -> dict[str, Any]:
    """Those options that were given: the others have their defaults in the estimators."""
    return {name: value for name, value in options.items() if value is not None}


def vector_option(sources: list[str] | None) -> dict[str, Any]:
    """--vectors as an estimator takes it; nothing where it was not given."""
    if not sources:
        return {}
    if "none" in sources and len(sources) > 1:
        raise InputError("--vectors none stands alone: the network learns its word vectors")
    return {"vectors": None if sources == ["none"] else sources[0] if len(sources) == 1 else sources}
