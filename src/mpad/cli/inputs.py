"""What the commands share about DATA: a file, a folder, a dataset's name, or standard input."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from mpad.datasets.names import NAMES
from mpad.errors import DataFileError, InputError
from mpad.io.encoding import decode, split_lines
from mpad.text.readers import Documents, read_documents

Data = Annotated[
    str,
    typer.Argument(
        help="CSV, TSV, JSON lines, Parquet (also .gz, .xz, .zip), a folder of class folders, "
        f"or a dataset by name ({', '.join(NAMES)}).",
        show_default=False,
    ),
]
TextColumn = Annotated[str | None, typer.Option("--text", help="Column of the text. Guessed if not given.")]
LabelColumn = Annotated[str | None, typer.Option("--label", help="Column of the label. Guessed if not given.")]
OwnTokenizer = Annotated[
    str | None,
    typer.Option("--tokenizer", help="module:function that the model was trained with, if it was one of your own."),
]
ModelFolder = Annotated[Path, typer.Argument(help="Folder of a fitted model.", show_default=False)]


def labelled(data: str, text: str | None, label: str | None, part: str) -> tuple[list[str], list[str]]:
    """Texts and labels of DATA; of a named dataset, the part to train or to test on."""
    if data in NAMES and not Path(data).exists():
        from mpad.datasets import load_dataset

        dataset = load_dataset(data)
        if part == "test" and dataset.cross_validated:
            raise DataFileError(
                f"{data} has no test part: it is meant for cross-validation (mpad reproduce table2 --dataset {data})"
            )
        documents = dataset.train if part == "train" else dataset.test
    else:
        documents = read_documents(data, text, label)
    if not len(documents):
        raise DataFileError(f"{data}: holds no documents")
    return documents.texts, documents.labels or []


def unlabelled(data: str, text: str | None) -> list[str]:
    """Texts of DATA; '-' is standard input, one document a line."""
    if data == "-":
        return split_lines(decode("standard input", sys.stdin.buffer.read()))
    if data in NAMES and not Path(data).exists():
        from mpad.datasets import load_dataset

        return load_dataset(data).test.texts
    documents: Documents = read_documents(data, text, need_labels=False)
    return documents.texts


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
