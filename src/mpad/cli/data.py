"""`mpad data`: list, check, export and import datasets."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from mpad.cli.inputs import Force, LabelColumn, Reader, TextColumn, one_column, show_columns, text_column
from mpad.cli.output import Format, FormatOption, OutFile, check_new, check_out, print_rows, show_rows, write_output
from mpad.cli.progress import track
from mpad.errors import DataFileError, InputError, UnknownDataset
from mpad.paper.datasets.catalogue import CATALOGUE, NAMES, PAPER

app = typer.Typer(
    name="data",
    help="List, check, export and import the paper's and the built-in datasets.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
)
Name = Annotated[str, Argument(help=f"One of {', '.join(PAPER)}.", show_default=False)]


@app.command("list")
def list_datasets(form: FormatOption = Format.table) -> None:
    """List the datasets and the location of their files.

    Example: `mpad data list`

    Files are searched in the folder MPAD_DATA, then in ~/.cache/mpad.
    """
    from mpad.paper.datasets.files import data_folders, find_files

    rows: list[list[str]] = [["tweets", "rated tweets, positive or negative", "built in", ""]]
    rows.append(["docstrings", "documentation of numpy, scipy, scikit-learn, 20 areas", "built in", ""])
    for name, entry in CATALOGUE.items():
        try:
            files = find_files(name)
            where = "not here" if files is None else str(next(iter(files.values())).parent)
        except DataFileError as error:
            where = f"incomplete: {error}"
        rows.append([name, entry.about, where, entry.source])
    typer.echo(f"looked for in {', then '.join(map(str, data_folders()))}", err=True)
    print_rows(["name", "what", "where", "imported from"], rows, form)


@app.command("check")
def check(
    names: Annotated[list[str] | None, Argument(help="One or two files, or datasets by name; by default all.")] = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    vectors: Annotated[str | None, Option(help="File of pretrained word vectors.", envvar="MPAD_VECTORS")] = None,
    form: FormatOption = Format.table,
    out: OutFile = None,
    force: Force = False,
) -> None:
    """Check data for problems: your own files, or the paper's datasets compared with its table 1.

    Example: `mpad data check reviews.csv`

    Example: `mpad data check train.csv test.csv --text review --label stars`

    Example: `mpad data check mpqa trec --vectors GoogleNews-vectors-negative300.bin.gz`

    For a file: class counts, lengths, duplicates and near-duplicates, texts with two labels, labels that differ only in
    spaces, small classes, scripts and languages. For two files, also the documents in both. The vocabularies of the
    paper's datasets are counted in lower case and with case.
    """
    from mpad.cli.reproduce import available_datasets

    if names and (names[0] not in NAMES or Path(names[0]).exists()):
        check_out(out, force)
        _check_files(names, text_column(text), one_column(label, "--label"), form, out)
        return
    chosen = names or available_datasets(PAPER)
    columns = ["dataset", "what", "ours", "paper", "difference"]
    rows = [row for name in track(chosen, "counting", len(chosen)) for row in _comparison_rows(name, vectors)]
    print_rows(columns, rows, form)


@app.command("export")
def export_dataset(
    name: Annotated[str, Argument(help=f"One of {', '.join(NAMES)}.", show_default=False)],
    out: Annotated[Path, Argument(help="CSV file to write, with columns text and label.")],
    part: Annotated[str, Option(help="Part to write: train or test.")] = "train",
    documents: Annotated[
        int | None, Option(min=1, help="Maximal number of documents, at even distances; by default all.")
    ] = None,
    force: Force = False,
) -> None:
    """Write a dataset to a CSV file.

    Example: `mpad data export tweets train.csv`

    Example: `mpad data export tweets test.csv --part test`
    """
    if part not in ("train", "test"):
        raise InputError(f"--part is train or test, not {part}")
    if name not in NAMES:
        raise UnknownDataset(f"no dataset '{name}' (known: {', '.join(NAMES)})")
    check_new(out, force, [".csv"])
    rows = list(zip(*Reader().labeled(name, part), strict=True))
    rows = rows[:: max(1, len(rows) // documents)][:documents] if documents else rows
    file = io.StringIO(newline="")
    csv.writer(file).writerows([("text", "label"), *rows])
    write_output(out, file.getvalue().encode("utf-8", "surrogatepass"), f"{len(rows):,} documents")


@app.command("import")
def import_dataset(
    name: Name,
    source: Annotated[Path, Argument(help="Original distribution: archive, folder or file.")],
) -> None:
    """Import the original distribution of a dataset.

    Example: `mpad data import imdb aclImdb_v1.tar.gz`

    `mpad data list` shows the source of each dataset.
    """
    from rich.console import Console

    from mpad.paper.datasets.files import check_parts, write_dataset
    from mpad.paper.datasets.importers import IMPORTERS

    if name not in IMPORTERS:
        raise UnknownDataset(f"no importer for '{name}' (known: {', '.join(IMPORTERS)})")
    with Console(stderr=True).status(f"reading {source} …"):
        parts = IMPORTERS[name](source)
        check_parts(name, parts, source)
        folder = write_dataset(name, parts)
    counts = ", ".join(f"{part} {len(documents):,}" for part, documents in parts.items())
    typer.echo(f"{counts} documents; wrote {folder}; next: mpad data check {name}", err=True)


def _check_files(names: list[str], text: str | None, label: str | None, form: Format, out: Path | None) -> None:
    from mpad.data.inspection import Finding, find_problems, leaks
    from mpad.data.readers import read_documents

    if len(names) > 2:
        raise InputError("one file is checked, or two are compared; found more")
    found: dict[str, list[Finding]] = {}
    texts = []
    for name in names:
        unlabelled: list[str] = []
        documents = read_documents(name, text, label, need_labels=label is not None, unlabelled=unlabelled)
        show_columns(name, documents.columns)
        found[name] = find_problems(documents.texts, documents.labels, unlabelled)
        texts.append(documents.texts)
    if len(names) == 2:
        found[", ".join(names)] = list(leaks(*texts)) or [Finding("documents in both", 0)]
    rows = [[name, one.what, one.number, one.example, one.cure] for name, own in found.items() for one in own]
    show_rows(["file", "what", "how many", "for example", "what to do"], rows, form, out)


def _comparison_rows(name: str, vectors: str | None) -> Iterator[list[Any]]:
    from mpad.paper.datasets import load_dataset
    from mpad.paper.datasets.statistics import describe
    from mpad.paper.experiments.paper import TABLE_1

    dataset, printed = load_dataset(name), TABLE_1.get(name)
    ours = describe(dataset, "kim", vectors)
    cased = describe(dataset, "kim-cased", vectors)
    compared = [
        ("training documents", ours.training, "training"),
        ("test documents", ours.test, "test"),
        ("classes", ours.classes, "classes"),
        ("mean words", round(ours.mean_words, 2), "mean_words"),
        ("most words", ours.longest, "longest"),
        ("vocabulary, lower-cased", ours.vocabulary, "vocabulary"),
        ("vocabulary, case kept", cased.vocabulary, "vocabulary"),
        ("words with a vector, lower-cased", ours.pretrained, "pretrained"),
        ("words with a vector, case kept", cased.pretrained, "pretrained"),
    ]
    for what, value, field in compared:
        theirs = None if printed is None else getattr(printed, field)
        if value is not None:
            yield [name, what, value, "" if theirs is None else theirs, _difference(value, theirs)]
    yield [name, "documents that repeat an earlier text", ours.duplicates, "", ""]
    yield [name, "texts with more than one label", ours.two_labels, "", ""]
    if ours.test:
        yield [name, "test documents that are training documents too", ours.leaked, "", ""]
    yield [name, "documents without a word", ours.empty, "", ""]


def _difference(value: float, printed: float | None) -> str:
    if printed is None or value == printed:
        return ""
    return f"{value - printed:+,.2f}" if isinstance(printed, float) else f"{value - printed:+,}"
