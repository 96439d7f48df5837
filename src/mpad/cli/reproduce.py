"""`mpad reproduce`: the paper's tables and figures."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from mpad.cli.inputs import Device
from mpad.cli.progress import progress_bar, track
from mpad.training.progress import EpochReport

if TYPE_CHECKING:
    from mpad.paper.experiments.protocol import Cell
    from mpad.paper.experiments.records import Record
    from mpad.paper.experiments.runner import Runner

Names = list[str] | None


class EngineVersion(StrEnum):
    """Records that count as done."""

    any = "any"
    current = "current"


class What(StrEnum):
    """Table or figures to reproduce."""

    table1 = "table1"
    table2 = "table2"
    table3 = "table3"
    figures = "figures"


def run(
    what: Annotated[What, Argument(help="Table to reproduce, or figures.", show_default=False)],
    dataset: Annotated[Names, Option(help="Datasets, repeated or comma-separated; by default all.")] = None,
    variant: Annotated[Names, Option(help="Variants: mpad, sentence-att, clique, path; by default all.")] = None,
    model: Annotated[Names, Option(help="Rows of the table, such as mpad-4mp or tfidf-svm; by default all.")] = None,
    preset: Annotated[str, Option(help="Preset: paper or authors.")] = "authors",
    tokenizer: Annotated[str, Option(help="Tokenizer: kim, or kim-cased to keep case.")] = "kim",
    grouped: Annotated[bool, Option("--grouped", help="Keep equal texts in one fold.")] = False,
    folds: Annotated[
        int | None, Option(help="Run only the first folds (with a fixed split: seeds); by default all.")
    ] = None,
    seeds: Annotated[int | None, Option(help="Number of seeds; by default 1 with folds, 5 with a fixed split.")] = None,
    vectors: Annotated[str | None, Option(help="File of pretrained word vectors.", envvar="MPAD_VECTORS")] = None,
    out: Annotated[Path, Option("--out", "-o", help="Folder of records, tables and figures.")] = Path("results"),
    device: Device = "auto",
    engine: Annotated[
        EngineVersion, Option(help="Records that count as done: any, or of the current engine.")
    ] = EngineVersion.any,
    no_run: Annotated[bool, Option("--no-run", help="Only compute the tables from the records.")] = False,
) -> None:
    """Run the paper's experiments and compute its tables from the records, compared with the published numbers.

    Example: `mpad reproduce table2 --dataset polarity --variant clique --folds 3`

    Example: `mpad reproduce table3 --vectors GoogleNews-vectors-negative300.bin.gz`

    Example: `mpad reproduce table2 --dataset trec --engine current`

    Example: `mpad reproduce table2 --no-run`

    Datasets are searched in the folder MPAD_DATA, then in ~/.cache/mpad (see `mpad data`). A line of JSON is recorded
    for every fold and seed once it is done; runs that train together, as on a GPU, are recorded together. Recorded runs
    are skipped, so an interrupted command continues where it stopped. A record states its engine, the version of the
    numerical code; the tables mark records of older engines, and --engine current runs them again.
    """
    from mpad.paper.experiments import figures, paper, tables
    from mpad.paper.experiments.protocol import make_cell, reads_trees, table_models
    from mpad.paper.experiments.records import Records
    from mpad.paper.experiments.runner import Runner
    from mpad.paper.experiments.summary import summarise

    (out / "records").mkdir(parents=True, exist_ok=True)  # fail now rather than after the first run
    records = Records(out / "records")
    if what is What.table1:
        if not no_run:
            _count(_split(dataset), vectors, out)
        typer.echo(tables.table_1(out))
    elif what is What.figures:
        for file in figures.draw(records, out / "figures"):
            typer.echo(f"wrote {file}", err=True)
    else:
        models = _split(model) + ["mpad" if name == "mpad" else f"mpad-{name}" for name in _split(variant)]
        setting = {"preset": preset, "tokenizer": tokenizer, "grouped": grouped}
        every = (*paper.TABLE_2_DATASETS, "snippets") if what is What.table2 else paper.TABLE_3_DATASETS
        datasets = _split(dataset) or (list(every) if no_run else available_datasets(every))
        cells = [
            make_cell(name, row, n_folds=folds, n_seeds=seeds, **setting)
            for name in datasets
            for row in models or table_models(what.value)
            if models or not reads_trees(row) or name in ("sst1", "sst2")
        ]
        if not no_run:
            _run(Runner(records, vectors, device, current=engine is EngineVersion.current), cells)
        typer.echo(tables.details(summarise(records), [(cell.dataset, cell.model) for cell in cells]))
    typer.echo(f"wrote {tables.write(records, out)}", err=True)


def _split(names: Names) -> list[str]:
    return [name for part in names or [] for name in part.split(",") if name]


def available_datasets(names: tuple[str, ...]) -> list[str]:
    """Return the datasets whose files are available; print the reason for skipping the others."""
    from mpad.errors import DataFileError, MissingDataset
    from mpad.paper.datasets.files import find_files

    available = []
    for name in names:
        try:
            if find_files(name) is not None:
                available.append(name)
                continue
            why = "its files are missing"
        except DataFileError as error:
            why = str(error)
        typer.echo(f"{name} is skipped: {why}", err=True)
    if not available:
        raise MissingDataset("none of the paper's datasets is here: mpad data list says where they are looked for")
    return available


def _run(runner: "Runner", cells: list["Cell"]) -> None:
    missing = {cell: len(runner.missing(cell)) for cell in cells}
    older = {cell: len(runner.older(cell)) for cell in cells}
    if not runner.current and any(older.values()):
        rows = ", ".join(f"{cell.dataset} {cell.model} {number}" for cell, number in older.items() if number)
        typer.echo(f"computed by an older engine, and left as it is: {rows}; --engine current runs it again", err=True)
    with progress_bar("running", sum(missing.values())) as advance:

        def sink(report: EpochReport) -> None:
            advance(f"epoch {report.epoch}  validation {report.validation_accuracy:.3f}", by=0)

        def done(record: "Record") -> None:
            advance()
            sys.stderr.write(f"{record}\n")

        for cell in [cell for cell, number in missing.items() if number]:
            try:
                runner.run(cell, sink, done)
            except KeyboardInterrupt:
                typer.echo(f"interrupted: what was running of {cell.dataset} {cell.model} is not recorded", err=True)
                raise


def _count(datasets: list[str], vectors: str | None, out: Path) -> None:
    from mpad.paper.experiments import paper
    from mpad.paper.experiments.tables import count

    chosen = datasets or available_datasets(tuple(paper.TABLE_1))
    for name in track(chosen, "counting", len(chosen)):
        count(name, vectors, out)
