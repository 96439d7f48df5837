"""`mpad data`: list, check, export and import datasets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from mpad.cli.inputs import Force, LabelColumn, TextColumn, one_column, show_columns
from mpad.cli.output import Format, FormatOption, OutFile, check_new, check_out, print_rows, show_rows
from mpad.paper.datasets.catalogue import CATALOGUE, NAMES, PAPER

app = typer.Typer(help="List, check, export and import the paper's and the built-in datasets.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help=f"One of {', '.join(PAPER)}.", show_default=False)]


@app.command("list")
def list_datasets(form: FormatOption = Format.table) -> None:
    """List the datasets and the location of their files.

    Example: `mpad data list`

    Files are searched in the folder MPAD_DATA, then in ~/.cache/mpad.
    """
    from mpad.errors import DataFileError
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
    names: Annotated[
        list[str] | None,
        typer.Argument(help="One or two files, or datasets by name; by default all available."),
    ] = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    vectors: Annotated[str | None, typer.Option(help="File of pretrained word vectors.", envvar="MPAD_VECTORS")] = None,
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

    if names and Path(names[0]).exists():
        check_out(out, force)
        _check_files(names, one_column(text, "--text"), one_column(label, "--label"), form, out)
        return
    chosen = names or available_datasets(PAPER)
    columns = ["dataset", "what", "ours", "paper", "difference"]
    rows = [row for name in _track_names(chosen) for row in _comparison_rows(name, vectors)]
    print_rows(columns, rows, form)


@app.command("export")
def export_dataset(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}.", show_default=False)],
    out: Annotated[Path, typer.Argument(help="CSV file to write, with columns text and label.")],
    part: Annotated[str, typer.Option(help="Part to write: train or test.")] = "train",
    documents: Annotated[
        int | None, typer.Option(min=1, help="Maximal number of documents, at even distances; by default all.")
    ] = None,
    force: Force = False,
) -> None:
    """Write a dataset to a CSV file.

    Example: `mpad data export tweets train.csv`

    Example: `mpad data export tweets test.csv --part test`
    """
    import csv
    import io

    from mpad.cli.inputs import read_labeled
    from mpad.errors import InputError
    from mpad.files.atomic import write_file

    if part not in ("train", "test"):
        raise InputError(f"--part is train or test, not {part}")
    check_new(out, force)
    rows = list(zip(*read_labeled(name, None, None, part), strict=True))
    rows = rows[:: max(1, len(rows) // documents)][:documents] if documents else rows
    file = io.StringIO(newline="")
    csv.writer(file).writerows([("text", "label"), *rows])
    write_file(out, file.getvalue().encode("utf-8", "surrogatepass"))
    typer.echo(f"wrote {out} ({len(rows):,} documents)", err=True)


@app.command("import")
def import_dataset(
    name: Name,
    source: Annotated[Path, typer.Argument(help="Original distribution: archive, folder or file.")],
) -> None:
    """Import the original distribution of a dataset.

    Example: `mpad data import imdb aclImdb_v1.tar.gz`

    `mpad data list` shows the source of each dataset.
    """
    from rich.console import Console

    from mpad.errors import UnknownDataset
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
    from mpad.data import inspection as inspection
    from mpad.data.labels import as_lists
    from mpad.data.readers import read_documents
    from mpad.errors import InputError

    if len(names) > 2:
        raise InputError("one file is checked, or two are compared; found more")
    missing: list[list[str]] = [[] for _ in names]
    files = [
        read_documents(name, text, label, need_labels=label is not None, unlabelled=unlabelled)
        for name, unlabelled in zip(names, missing, strict=True)
    ]
    rows: list[list[Any]] = []
    for name, documents, unlabelled in zip(names, files, missing, strict=True):
        show_columns(name, documents.columns)
        result = [inspection.Finding("documents", len(documents))]
        if unlabelled:
            where = ", ".join(unlabelled[:3]) + (" …" if len(unlabelled) > 3 else "")
            cure = "label these rows or drop them: fit refuses them, and nothing below counts them"
            result.append(inspection.Finding("documents without a label", len(unlabelled), where, cure))
        if documents.labels is not None:
            classes = [name for own in as_lists(documents.labels) for name in own]
            result.append(inspection.Finding("classes", len(set(classes))))
            result += inspection.class_counts(documents.labels)
            result += inspection.label_findings(classes)
        result += inspection.lengths(documents.texts)
        result += inspection.text_findings(documents.texts, documents.labels)
        result += inspection.kinds_of_text(documents.texts)
        rows += [[name, one.what, one.number, one.example, one.cure] for one in result]
    if len(files) == 2:
        both = f"{names[0]}, {names[1]}"
        result = list(inspection.leaks(files[0].texts, files[1].texts)) or [inspection.Finding("documents in both", 0)]
        rows += [[both, one.what, one.number, one.example, one.cure] for one in result]
    show_rows(["file", "what", "how many", "for example", "what to do"], rows, form, out)


def _track_names(names: list[str]) -> Iterator[str]:
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(names, description="counting", console=console, transient=True, disable=not console.is_terminal)


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
