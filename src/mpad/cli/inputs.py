"""Options shared by the commands, and reading of DATA: files, a folder, a named dataset, or standard input."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from mpad.cli.progress import track
from mpad.data.readers import Documents, Files, ReadColumns, TableRows, choose_columns, read_documents, read_rows
from mpad.data.tables import JOIN, KINDS
from mpad.errors import DataFileError, InputError
from mpad.files.archives import PACKED
from mpad.files.encoding import decode, split_lines
from mpad.paper.datasets.catalogue import NAMES
from mpad.text.printable import printable

_DATA_HELP = (
    "CSV, TSV, JSON lines, Parquet or Excel file (also .gz, .xz, .zip), quoted pattern of files, folder of class "
    f"folders, or named dataset ({', '.join(NAMES)})."
)
Data = Annotated[str, Argument(help=_DATA_HELP, show_default=False)]
DataFiles = Annotated[list[str], Argument(help=_DATA_HELP, metavar="DATA...", show_default=False)]
TextColumn = Annotated[
    list[str] | None,
    Option("--text", help="Text column; by default the one with a common name. Repeat it to join several."),
]
LabelColumn = Annotated[
    list[str] | None,
    Option("--label", metavar="LABEL", help="Label column; by default the one with a common name."),
]
LabelColumns = Annotated[
    list[str] | None,
    Option(
        "--label", help="Label column; guessed by default. Repeat it for indicator columns (0 and 1) of several labels."
    ),
]
Separator = Annotated[str | None, Option(help="Separator of several labels in a cell, such as ';'.")]
Vectors = Annotated[
    list[str] | None,
    Option(
        help="Word vectors: auto (default), a file, the name or folder of a Model2Vec or sentence-transformers model, "
        "corpus, or none. Repeat it to concatenate several."
    ),
]
Device = Annotated[str, Option(help="Device: auto, cpu, cuda or cuda:N.")]
Seed = Annotated[int, Option(help="Random seed.")]
Force = Annotated[bool, Option("--force", help="Replace an existing destination.")]
OwnTokenizer = Annotated[
    str | None,
    Option("--tokenizer", help="module:function of the custom tokenizer that the model was trained with."),
]
ModelFolder = Annotated[Path, Argument(help="Folder of a fitted model.", show_default=False)]


class EngineName(StrEnum):
    """Engine that runs the work."""

    local = "local"
    ray = "ray"


EngineOption = Annotated[EngineName, Option("--engine", help="Processes of this machine, or Ray.")]
Address = Annotated[
    str | None, Option("--address", help="Address of the Ray cluster; by default one is started on this machine.")
]

LARGE = 1 << 30  # bytes; larger files are read while they are processed
_CHUNK = 2048  # documents per batch


def text_column(names: Sequence[str] | None) -> str | None:
    """Return the name of the text column, or of several that are joined."""
    return JOIN.join(names) if names else None


def one_column(names: Sequence[str] | None, option: str) -> str | None:
    """Return the column that an option names; raise InputError if it was repeated."""
    if names and len(names) > 1:
        raise InputError(f"{option} names one column, found {', '.join(names)}; join them in the file first")
    return names[0] if names else None


@dataclass(frozen=True)
class Chunks:
    """Rows of DATA in chunks, with all columns."""

    names: list[str]
    chunks: Iterable[Sequence[Sequence[Any]]]
    text_at: int = 0
    total: int | None = None  # number of chunks, if known


@dataclass(frozen=True)
class Reader:
    """Reader of DATA by the columns and the separator that options name, or that a model was trained on."""

    text: str | None = None
    label: str | Sequence[str] | None = None
    separator: str | None = None
    remembered: ReadColumns | None = None

    @classmethod
    def of(
        cls,
        text: Sequence[str] | None,
        label: str | Sequence[str] | None = None,
        separator: str | None = None,
        model: Path | None = None,
    ) -> "Reader":
        """Return the reader for the options --text, --label and --separator, and for the data of a model."""
        remembered, trained_separator = (None, None) if model is None else _read_card(model)
        return cls(text_column(text), label, separator or trained_separator, remembered)

    def documents(self, data: Files, part: str, further: Sequence[str] = ()) -> Documents:
        """Read labeled documents and print their columns; of a named dataset, read one part."""
        if isinstance(data, str) and is_dataset_name(data):
            if further:
                raise InputError(f"{data} has no column '{further[0]}'")
            documents = _load_part(data, part)
        else:
            documents = read_documents(
                data, self.text, self.label, separator=self.separator, remembered=self.remembered, further=further
            )
            show_columns(data, documents.columns)
        if not len(documents):
            raise DataFileError(f"{describe_source(data)}: holds no documents")
        return documents

    def labeled(self, data: Files, part: str) -> tuple[list[str], list[Any]]:
        """Read texts and their labels."""
        documents = self.documents(data, part)
        return documents.texts, documents.labels or []

    def labeled_chunks(self, data: str) -> Iterator[tuple[list[str], list[Any]]]:
        """Return texts and labels in chunks; large files are read as the chunks are used."""
        if is_large(data):
            from mpad.data.streams import Columns, list_pieces

            chosen = choose_columns(data, self.text, self.label, remembered=self.remembered)
            assert chosen is not None and chosen.text is not None  # only tables are streamed
            show_columns(data, chosen)
            labels = chosen.labels[0] if len(chosen.labels) == 1 else chosen.labels
            pieces = list_pieces(data, Columns(chosen.text, labels, self.separator))
            return ((chunk.texts, chunk.labels) for piece in pieces for chunk in piece.chunks())
        texts, known = self.labeled(data, "test")
        parts = [slice(start, start + _CHUNK) for start in range(0, len(texts), _CHUNK)]
        return ((texts[part], known[part]) for part in track(parts, "reading", len(parts) if len(parts) > 3 else None))

    def texts(self, data: str) -> list[str]:
        """Read texts without labels; "-" is standard input, one document per line."""
        return self.unlabeled_documents(data).texts

    def unlabeled_documents(self, data: str) -> Documents:
        """Read texts, with their ids if the table has some; labels are ignored."""
        if data == "-":
            return Documents(split_lines(decode("standard input", sys.stdin.buffer.read())))
        if is_dataset_name(data):
            return Documents(_load_part(data, "test").texts)
        documents = read_documents(data, self.text, need_labels=False, remembered=self.remembered)
        if documents.columns is not None:
            show_columns(data, ReadColumns(documents.columns.text))
        return documents

    def unlabeled(self, data: str, classes: set[str]) -> Any:
        """Read texts without labels; with them, if the table has columns named as the classes, the probabilities."""
        table = self.rows(data)
        rows = [row for chunk in table.chunks for row in chunk]
        texts = [str(row[table.text_at]) for row in rows]
        places = {name: at for at, name in enumerate(table.names) if name in classes and at != table.text_at}
        if not places:
            return texts
        return texts, {name: [_as_number(data, name, row[at]) for row in rows] for name, at in places.items()}

    def rows(self, data: str) -> Chunks:
        """Read texts with all columns of their table; "-" is standard input, read as it arrives."""
        if data == "-":
            return Chunks(["text"], ([[line] for line in lines] for lines in _iter_stdin_lines()))
        if is_text(data):
            return Chunks(["text"], [[[data]]])
        if is_dataset_name(data):
            table = TableRows(["text"], [[one] for one in self.texts(data)])
        else:
            table = read_rows(data, self.text, self.remembered)
        if len(table.names) > 1:
            show_columns(data, ReadColumns(table.names[table.text_at]))
        chunks = [table.cells[start : start + _CHUNK] for start in range(0, len(table.cells), _CHUNK)]
        return Chunks(table.names, chunks, table.text_at, len(chunks))


def _as_number(data: str, name: str, cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        raise DataFileError(
            f"{describe_source(data)}: column '{name}' has the name of a class, so it must hold probabilities; found "
            f"{cell!r}"
        ) from None


def _read_card(model: Path) -> tuple[ReadColumns, str | None]:
    """Return the columns and the separator of a model's training data, as far as its card states them."""
    from mpad.storage.model_folder import open_model

    card = open_model(model, lambda files: files.card())
    columns, separator = card.get("columns"), card.get("separator")
    text, labels = (columns.get("text"), columns.get("labels")) if isinstance(columns, dict) else (None, None)
    names = labels if isinstance(labels, list) and all(isinstance(name, str) for name in labels) else []
    known = ReadColumns(text if isinstance(text, str) else None, tuple(names))
    return known, separator if isinstance(separator, str) and separator else None


def card_entries(data: Files, columns: ReadColumns | None, separator: str | None = None) -> dict[str, Any]:
    """Return the entries of a model's card on its data; they let later commands omit --text, --label, --separator."""
    named = None if columns is None else {"text": columns.text, "labels": list(columns.labels)}
    return {"data": describe_source(data), **drop_none(columns=named, separator=separator)}


def show_columns(data: Files, columns: ReadColumns | None) -> None:
    """Print which columns of DATA are used."""
    if columns is not None:
        typer.echo(printable(f"{describe_source(data)}: {columns}"), err=True)


def _load_part(name: str, part: str) -> Documents:
    from mpad.paper.datasets import load_dataset

    dataset = load_dataset(name)
    if part == "test" and dataset.cross_validated:
        raise DataFileError(
            f"{name} has no test part: it is meant for cross-validation (mpad reproduce table2 --dataset {name})"
        )
    return dataset.train if part == "train" else dataset.test


def is_dataset_name(data: str) -> bool:
    """Return whether DATA is the name of a dataset and not of a file."""
    return data in NAMES and not Path(data).exists()


def is_large(data: Files) -> bool:
    """Return whether the files of DATA are too large to be read into memory."""
    from mpad.data.streams import total_size

    return not (isinstance(data, str) and is_dataset_name(data)) and total_size(data) >= LARGE


def is_text(data: str) -> bool:
    """Return whether DATA is itself a document, neither an existing file nor like a file name."""
    if not data.strip():
        return True  # an empty document, although Path("") is a folder
    if data == "-" or data in NAMES or len(data) < 4096 and "\0" not in data and Path(data).exists():
        return False
    return Path(data[-20:]).suffix.lower() not in (*KINDS, *PACKED) and (" " in data.strip() or "/" not in data)


def describe_source(data: Files) -> str:
    """Return a short name for DATA."""
    files = [data] if isinstance(data, (str, Path)) else data
    return Path(files[0]).name + (f" and {len(files) - 1:,} more" if len(files) > 1 else "")


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
