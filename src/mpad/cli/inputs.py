"""Options shared by the commands, and reading of DATA: files, a folder, a named dataset, or standard input."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mpad.data.readers import Documents, Files, ReadColumns, read_documents, read_rows
from mpad.data.tables import KINDS
from mpad.errors import DataFileError, InputError
from mpad.files.archives import PACKED
from mpad.files.encoding import decode, split_lines
from mpad.paper.datasets.catalogue import NAMES
from mpad.text.printable import printable

Data = Annotated[
    str,
    typer.Argument(
        help="CSV, TSV, JSON lines, Parquet or Excel file (also .gz, .xz, .zip), quoted pattern of files, folder of "
        f"class folders, or named dataset ({', '.join(NAMES)}).",
        show_default=False,
    ),
]
DataFiles = Annotated[
    list[str],
    typer.Argument(
        help="CSV, TSV, JSON lines, Parquet or Excel files (also .gz, .xz, .zip), quoted patterns of files, folder of "
        f"class folders, or named dataset ({', '.join(NAMES)}).",
        metavar="DATA...",
        show_default=False,
    ),
]
LabelColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--label", help="Label column; guessed by default. Repeat it for indicator columns (0 and 1) of several labels."
    ),
]
Separator = Annotated[str | None, typer.Option(help="Separator of several labels in a cell, such as ';'.")]
TextColumn = Annotated[  # a list, so that a second one can be refused
    list[str] | None,
    typer.Option("--text", metavar="TEXT", help="Text column; by default the one with a common name."),
]
LabelColumn = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="LABEL", help="Label column; by default the one with a common name."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing destination.")]
OwnTokenizer = Annotated[
    str | None,
    typer.Option("--tokenizer", help="module:function of the custom tokenizer that the model was trained with."),
]
ModelFolder = Annotated[Path, typer.Argument(help="Folder of a fitted model.", show_default=False)]


class Engine(StrEnum):
    """Engine that runs the work."""

    local = "local"
    ray = "ray"


EngineOption = Annotated[Engine, typer.Option("--engine", help="Processes of this machine, or Ray.")]
Address = Annotated[
    str | None, typer.Option("--address", help="Address of the Ray cluster; by default one is started on this machine.")
]

_CHUNK = 2048  # documents per batch


def one_column(names: Sequence[str] | None, option: str) -> str | None:
    """Return the column that an option names; raise InputError if it was repeated."""
    if names and len(names) > 1:
        raise InputError(f"{option} names one column, found {', '.join(names)}; join them in the file first")
    return names[0] if names else None


def remembered_columns(model: Path) -> ReadColumns:
    """Return the columns that a model was trained on, as far as its card states them."""
    from mpad.storage.model_folder import open_model

    saved = open_model(model, lambda files: files.card()).get("columns")
    text, labels = (saved.get("text"), saved.get("labels")) if isinstance(saved, dict) else (None, None)
    names = labels if isinstance(labels, list) and all(isinstance(name, str) for name in labels) else []
    return ReadColumns(text if isinstance(text, str) else None, tuple(names))


def remembered_separator(model: Path) -> str | None:
    """Return the label separator of a model's training data."""
    from mpad.storage.model_folder import open_model

    saved = open_model(model, lambda files: files.card()).get("separator")
    return saved if isinstance(saved, str) and saved else None


def column_entries(columns: ReadColumns | None, separator: str | None) -> dict[str, Any]:
    """Return the entries of a model's card that let later commands omit --text, --label and --separator."""
    facts: dict[str, Any] = {}
    if columns is not None:
        facts["columns"] = {"text": columns.text, "labels": list(columns.labels)}
    return facts if separator is None else {**facts, "separator": separator}


def show_columns(data: Files, columns: ReadColumns | None) -> None:
    """Print which columns of DATA are used."""
    if columns is not None:
        typer.echo(printable(f"{describe_source(data)}: {columns}"), err=True)


def read_labeled(
    data: Files,
    text: Sequence[str] | None,
    label: Sequence[str] | None,
    part: str,
    separator: str | None = None,
    remembered: ReadColumns | None = None,
) -> tuple[list[str], list[Any]]:
    """Read the texts and labels of DATA and print their columns; of a named dataset, read one part."""
    documents = read_labeled_documents(data, text, label, part, separator, remembered)
    return documents.texts, documents.labels or []


def read_labeled_documents(
    data: Files,
    text: Sequence[str] | None,
    label: Sequence[str] | None,
    part: str,
    separator: str | None = None,
    remembered: ReadColumns | None = None,
) -> Documents:
    """Read DATA as `read_labeled` does, and return it with the columns used."""
    if isinstance(data, str) and is_dataset_name(data):
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
        raise DataFileError(f"{describe_source(data)}: holds no documents")
    return documents


def is_dataset_name(data: str) -> bool:
    """Return whether DATA is the name of a dataset and not of a file."""
    return data in NAMES and not Path(data).exists()


def is_text(data: str) -> bool:
    """Return whether DATA is itself a document, neither an existing file nor like a file name."""
    if not data.strip():
        return True  # an empty document, although Path("") is a folder
    if data == "-" or len(data) < 4096 and "\0" not in data and Path(data).exists():
        return False
    return Path(data[-20:]).suffix.lower() not in (*KINDS, *PACKED) and (" " in data.strip() or "/" not in data)


def describe_source(data: Files) -> str:
    """Return a short name for DATA."""
    files = [data] if isinstance(data, (str, Path)) else data
    return Path(files[0]).name + (f" and {len(files) - 1:,} more" if len(files) > 1 else "")


def read_texts(data: str, text: Sequence[str] | None, remembered: ReadColumns | None = None) -> list[str]:
    """Read the texts of DATA; "-" is standard input, one document per line."""
    if data == "-":
        return split_lines(decode("standard input", sys.stdin.buffer.read()))
    if is_dataset_name(data):
        from mpad.paper.datasets import load_dataset

        return load_dataset(data).test.texts
    documents = read_documents(data, one_column(text, "--text"), need_labels=False, remembered=remembered)
    if documents.columns is not None:
        show_columns(data, ReadColumns(documents.columns.text))
    return documents.texts


@dataclass(frozen=True)
class Stream:
    """Rows of DATA in chunks, with all columns."""

    names: list[str]
    chunks: Iterable[list[Sequence[Any]]]
    text_at: int = 0
    total: int | None = None  # number of chunks, if known


def open_rows(data: str, text: Sequence[str] | None, remembered: ReadColumns | None = None) -> Stream:
    """Open the rows of DATA; "-" is standard input, one document per line, read as it arrives."""
    if data == "-":
        return Stream(["text"], ([[line] for line in lines] for lines in _iter_stdin_lines()))
    if is_dataset_name(data):
        return Stream(["text"], _chunks([[one] for one in read_texts(data, text)]))
    if is_text(data):
        return Stream(["text"], [[[data]]])
    rows = read_rows(data, one_column(text, "--text"), remembered)
    if len(rows.names) > 1:
        show_columns(data, ReadColumns(rows.names[rows.text_at]))
    return Stream(rows.names, _chunks(rows.cells), rows.text_at, -(-len(rows.cells) // _CHUNK))


def _chunks(rows: Sequence[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    for start in range(0, len(rows), _CHUNK):
        yield list(rows[start : start + _CHUNK])


def _iter_stdin_lines() -> Iterator[list[str]]:
    source: Any = sys.stdin.buffer
    rest = b""
    while data := source.read1(1 << 18):
        if not rest and data[:2] in (b"\xff\xfe", b"\xfe\xff"):  # UTF-16 cannot be split at newline bytes
            yield split_lines(decode("standard input", data + source.read()))
            return
        whole, end, rest = (rest + data).rpartition(b"\n")
        if end:
            yield split_lines(decode("standard input", whole + end))
    if rest:
        yield split_lines(decode("standard input", rest))


def pick_examples(texts: list[str], labels: list[Any], each: int = 3) -> list[tuple[str, str]]:
    """Return a few examples per class as pairs of label and text, preferring about 160 characters."""
    order = sorted(range(len(texts)), key=lambda k: (abs(len(texts[k]) - 160), k))
    chosen: dict[str, list[int]] = {}
    for k in order:
        name = ", ".join(labels[k]) if isinstance(labels[k], list) else str(labels[k])
        own = chosen.setdefault(name, [])
        if len(own) < each and texts[k].strip():
            own.append(k)
    return [(label, texts[k][:1_000]) for label in sorted(chosen) for k in chosen[label]]


def drop_none(**options: Any) -> dict[str, Any]:
    """Return the options that are set; the estimators have defaults for the others."""
    return {name: value for name, value in options.items() if value is not None}


def vector_option(sources: list[str] | None) -> dict[str, Any]:
    """Return the `vectors` parameter of an estimator for --vectors; empty if the option was not used."""
    if not sources:
        return {}
    if "none" in sources and len(sources) > 1:
        raise InputError("--vectors none cannot be combined: the network learns its word vectors")
    return {"vectors": None if sources == ["none"] else sources[0] if len(sources) == 1 else sources}
