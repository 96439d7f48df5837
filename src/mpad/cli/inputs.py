"""What the commands share about DATA: a file, a folder, a dataset's name, or standard input."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mpad.data.readers import Documents, Files, ReadColumns, read_documents, read_rows
from mpad.data.tables import KINDS
from mpad.errors import DataFileError, InputError
from mpad.files.archives import PACKED
from mpad.files.encoding import decode, split_lines
from mpad.paper.datasets.names import NAMES
from mpad.text.printable import printable

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
TextColumn = Annotated[  # a list, so that a second one is seen, and refused
    list[str] | None,
    typer.Option("--text", metavar="TEXT", help="Column of the text. By default the one with a common name."),
]
LabelColumn = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="LABEL", help="Column of the label. By default the one with a common name."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is at the destination.")]
OwnTokenizer = Annotated[
    str | None,
    typer.Option("--tokenizer", help="module:function that the model was trained with, if it was one of your own."),
]
ModelFolder = Annotated[Path, typer.Argument(help="Folder of a fitted model.", show_default=False)]


_CHUNK = 2048  # documents that are answered together


def one_column(names: Sequence[str] | None, option: str) -> str | None:
    """Return the column that an option names; refuse several, instead of dropping all but the last."""
    if names and len(names) > 1:
        raise InputError(f"{option} names one column, found {', '.join(names)}; join them in the file first")
    return names[0] if names else None


def remembered_columns(model: Path) -> ReadColumns:
    """Return the columns that a model was trained on, as far as its folder tells."""
    from mpad.storage.model_folder import open_model

    saved = open_model(model, lambda files: files.card()).get("columns")
    text, labels = (saved.get("text"), saved.get("labels")) if isinstance(saved, dict) else (None, None)
    listed = labels if isinstance(labels, list) and all(isinstance(name, str) for name in labels) else []
    return ReadColumns(text if isinstance(text, str) else None, tuple(listed))


def remembered_separator(model: Path) -> str | None:
    """Return the sign between the labels of the documents that a model was trained on."""
    from mpad.storage.model_folder import open_model

    saved = open_model(model, lambda files: files.card()).get("separator")
    return saved if isinstance(saved, str) and saved else None


def column_facts(columns: ReadColumns | None, separator: str | None) -> dict[str, Any]:
    """Return what a model's card keeps, so that later commands need no flags."""
    facts: dict[str, Any] = {}
    if columns is not None:
        facts["columns"] = {"text": columns.text, "labels": list(columns.labels)}
    return facts if separator is None else {**facts, "separator": separator}


def show_columns(data: Files, columns: ReadColumns | None) -> None:
    """Print which columns of DATA are read, and which are not."""
    if columns is not None:
        typer.echo(printable(f"{said(data)}: {columns}"), err=True)


def labelled(
    data: Files,
    text: Sequence[str] | None,
    label: Sequence[str] | None,
    part: str,
    separator: str | None = None,
    remembered: ReadColumns | None = None,
) -> tuple[list[str], list[Any]]:
    """Read texts and labels of DATA, and print which columns they are; of a named dataset, one part."""
    documents = labelled_documents(data, text, label, part, separator, remembered)
    return documents.texts, documents.labels or []


def labelled_documents(
    data: Files,
    text: Sequence[str] | None,
    label: Sequence[str] | None,
    part: str,
    separator: str | None = None,
    remembered: ReadColumns | None = None,
) -> Documents:
    """Read texts and labels as `labelled` does, with the columns that were read."""
    if isinstance(data, str) and is_named(data):
        from mpad.paper.datasets import load_dataset

        dataset = load_dataset(data)
        if part == "test" and dataset.cross_validated:
            raise DataFileError(
                f"{data} has no test part: it is meant for cross-validation (mpad reproduce table2 --dataset {data})"
            )
        documents = dataset.train if part == "train" else dataset.test
    else:
        column = one_column(text, "--text")
        documents = read_documents(data, column, label, separator=separator, remembered=remembered)
        show_columns(data, documents.columns)
    if not len(documents):
        raise DataFileError(f"{said(data)}: holds no documents")
    return documents


def is_named(data: str) -> bool:
    """Whether DATA is a dataset's name, and no file's."""
    return data in NAMES and not Path(data).exists()


def is_text(data: str) -> bool:
    """Return whether DATA is a document itself: not a file, and not what looks like the name of one."""
    if not data.strip():
        return True  # a document without words, not the folder that Path("") means
    if data == "-" or len(data) < 4096 and "\0" not in data and Path(data).exists():
        return False
    return Path(data[-20:]).suffix.lower() not in (*KINDS, *PACKED) and (" " in data.strip() or "/" not in data)


def said(data: Files) -> str:
    """DATA in a few words."""
    files = [data] if isinstance(data, (str, Path)) else data
    return Path(files[0]).name + (f" and {len(files) - 1:,} more" if len(files) > 1 else "")


def unlabelled(data: str, text: Sequence[str] | None, remembered: ReadColumns | None = None) -> list[str]:
    """Read the texts of DATA; '-' is standard input, one document per line."""
    if data == "-":
        return split_lines(decode("standard input", sys.stdin.buffer.read()))
    if is_named(data):
        from mpad.paper.datasets import load_dataset

        return load_dataset(data).test.texts
    documents = read_documents(data, one_column(text, "--text"), need_labels=False, remembered=remembered)
    if documents.columns is not None:
        show_columns(data, ReadColumns(documents.columns.text))
    return documents.texts


@dataclass(frozen=True)
class Stream:
    """Rows of DATA as they come, some at a time, with all columns."""

    names: list[str]
    chunks: Iterable[list[Sequence[Any]]]
    text_at: int = 0
    total: int | None = None  # chunks, where that is known


def rows_of(data: str, text: Sequence[str] | None, remembered: ReadColumns | None = None) -> Stream:
    """Read rows of DATA; '-' is standard input, one document per line, predicted as soon as it is there."""
    if data == "-":
        return Stream(["text"], ([[line] for line in lines] for lines in _lines_as_they_come()))
    if is_named(data):
        return Stream(["text"], _chunks([[one] for one in unlabelled(data, text)]))
    if is_text(data):
        return Stream(["text"], [[[data]]])
    rows = read_rows(data, one_column(text, "--text"), remembered)
    if len(rows.names) > 1:
        show_columns(data, ReadColumns(rows.names[rows.text_at]))
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
