"""`mpad reproduce`: the paper's tables and figures, again."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mpad.paper.experiments.protocol import Cell
    from mpad.paper.experiments.runner import Runner

Names = list[str] | None


class Engine(StrEnum):
    """Which records count as done."""

    any = "any"
    current = "current"


class What(StrEnum):
    """What to reproduce."""

    table1 = "table1"
    table2 = "table2"
    table3 = "table3"
    figures = "figures"


def run(
    what: Annotated[What, typer.Argument(help="Which table, or the figures.", show_default=False)],
    dataset: Annotated[Names, typer.Option(help="Only these; repeat, or put commas between.")] = None,
    variant: Annotated[Names, typer.Option(help="Only these: mpad, sentence-att, clique, path.")] = None,
    model: Annotated[Names, typer.Option(help="Only these rows, such as mpad-4mp or tfidf-svm.")] = None,
    preset: Annotated[str, typer.Option(help="paper or authors.")] = "authors",
    tokenizer: Annotated[str, typer.Option(help="kim, or kim-cased to keep case.")] = "kim",
    grouped: Annotated[bool, typer.Option("--grouped", help="Folds keep equal texts together.")] = False,
    folds: Annotated[int | None, typer.Option(help="The first so many folds (of a fixed split: seeds).")] = None,
    seeds: Annotated[int | None, typer.Option(help="Seeds: 1 over folds, 5 on a fixed split if not given.")] = None,
    vectors: Annotated[str | None, typer.Option(help="Pretrained word vectors, a file.", envvar="MPAD_VECTORS")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of records, tables and figures.")] = Path("results"),
    device: Annotated[str, typer.Option(help="auto, cpu, cuda …")] = "auto",
    engine: Annotated[
        Engine, typer.Option(help="current: what an older engine computed is run again; any: it counts as done.")
    ] = Engine.any,
    no_run: Annotated[bool, typer.Option("--no-run", help="Only compute anew from the records.")] = False,
) -> None:
    """Run the paper's experiments, and compute its tables from the records, beside the numbers that it printed.

    Example: `mpad reproduce table2 --dataset polarity --variant clique --folds 3`

    Example: `mpad reproduce table3 --vectors GoogleNews-vectors-negative300.bin.gz`

    Example: `mpad reproduce table2 --dataset trec --engine current`

    Example: `mpad reproduce table2 --no-run`

    Datasets are found in the folder MPAD_DATA or in ~/.cache/mpad (see `mpad data`). A line of JSON is kept for every
    fold and seed as soon as it is done; those that train together, as on a GPU, are done together. What is recorded
    already is skipped: an interrupted run goes on where it stopped. A record keeps its engine, the version of what the
    system computes; those of older engines stay, and tables say where, until --engine current runs them again.
    """
    from mpad.paper.experiments import figures, paper, tables
    from mpad.paper.experiments.protocol import make_cell, reads_trees, table_models
    from mpad.paper.experiments.records import Records
    from mpad.paper.experiments.runner import Runner
    from mpad.paper.experiments.summary import summarise

    (out / "records").mkdir(parents=True, exist_ok=True)  # better to fail now than after an hour
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
        datasets = _split(dataset) or (list(every) if no_run else present(every))
        cells = [
            make_cell(name, row, n_folds=folds, n_seeds=seeds, **setting)
            for name in datasets
            for row in models or table_models(what.value)
            if models or not reads_trees(row) or name in ("sst1", "sst2")
        ]
        if not no_run:
            _run(Runner(records, vectors, device, current=engine is Engine.current), cells)
        typer.echo(tables.details(summarise(records), [(cell.dataset, cell.model) for cell in cells]))
    typer.echo(f"wrote {tables.write(records, out)}", err=True)


def _split(given: Names) -> list[str]:
    return [name for part in given or [] for name in part.split(",") if name]


def present(names: tuple[str, ...]) -> list[str]:
    """Those whose files are here; of the others it says so."""
    from mpad.errors import DataFileError, MissingDataset
    from mpad.paper.datasets.files import find_files

    present = []
    for name in names:
        try:
            if find_files(name) is not None:
                present.append(name)
                continue
            why = "its files are not here"
        except DataFileError as error:
            why = str(error)
        typer.echo(f"{name} is skipped: {why}", err=True)
    if not present:
        raise MissingDataset("none of the paper's datasets is here: mpad data list says where they are looked for")
    return present


def _run(runner: "Runner", cells: list["Cell"]) -> None:
    from mpad.cli.progress import run_bar

    missing = {cell: len(runner.missing(cell)) for cell in cells}
    older = {cell: len(runner.older(cell)) for cell in cells}
    if not runner.current and any(older.values()):
        rows = ", ".join(f"{cell.dataset} {cell.model} {number}" for cell, number in older.items() if number)
        typer.echo(f"computed by an older engine, and left as it is: {rows}; --engine current runs it again", err=True)
    with run_bar(sum(missing.values())) as (sink, done):
        for cell in [cell for cell, number in missing.items() if number]:
            try:
                runner.run(cell, sink, done)
            except KeyboardInterrupt:
                typer.echo(f"interrupted: what was running of {cell.dataset} {cell.model} is not recorded", err=True)
                raise


def _count(datasets: list[str], vectors: str | None, out: Path) -> None:
    from rich.console import Console
    from rich.progress import track

    from mpad.paper.experiments import paper
    from mpad.paper.experiments.table1 import count

    chosen = datasets or present(tuple(paper.TABLE_1))
    for name in track(chosen, description="counting", console=Console(stderr=True)):
        count(name, vectors, out)
