"""`mpad predict`: label new documents."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpad.cli.inputs import (
    Address,
    Engine,
    EngineOption,
    Force,
    ModelFolder,
    OwnTokenizer,
    TextColumn,
    one_column,
    open_rows,
    remembered_columns,
)
from mpad.cli.output import Format, FormatOption, OutFile, Spreadsheet, check_out, show_rows
from mpad.data.readers import ReadColumns, choose_columns
from mpad.errors import InputError, StoreError
from mpad.text.printable import printable

if TYPE_CHECKING:
    from collections import Counter

    from mpad.scale.columns import PredictOptions
    from mpad.scale.job import Job, Outcome, Task


def run(
    model: ModelFolder,
    data: Annotated[
        str,
        typer.Argument(
            help="Data file, quoted document, or - for standard input, one document per line; with OUT, also a quoted "
            "pattern or a folder of data files."
        ),
    ] = "-",
    out: Annotated[
        Path | None,
        typer.Argument(
            help="Folder for one Parquet file per file of DATA; or a file, as with --out.", show_default=False
        ),
    ] = None,
    out_file: OutFile = None,
    force: Force = False,
    spreadsheet: Spreadsheet = False,
    text: TextColumn = None,
    form: FormatOption = Format.table,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of every class.")] = False,
    top: Annotated[int | None, typer.Option(min=1, help="Add this many of the most probable classes.")] = None,
    reject_below: Annotated[
        float | None, typer.Option(min=0, max=1, help="Leave the label empty if its probability is below this value.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Multi-label: one threshold for all labels instead of the fitted ones."),
    ] = None,
    device: Annotated[str, typer.Option(help="Device: cpu predicts with NumPy; cuda and auto import torch.")] = "cpu",
    tokenizer: OwnTokenizer = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="With OUT: processes, with one file each at a time; by default one per core."),
    ] = None,
    engine: EngineOption = Engine.local,
    address: Address = None,
) -> None:
    """Predict the labels of documents, one row per document, in order. CSV and JSON lines keep all input columns.

    Example: `mpad predict my-model new.csv --out labels.csv`

    Example: `mpad predict my-model "a moving film"`

    Example: `echo "a moving film" | mpad predict my-model`

    Example: `tail -f log.txt | mpad predict my-model --format jsonl`

    Example: `mpad predict my-model new.csv --top 3`

    Example: `mpad predict my-model 'in/*.parquet' predictions --workers 8`

    Example: `mpad predict my-model 'in/*.parquet' predictions --engine ray --address 10.0.0.1:6379`

    With a folder OUT, each file is streamed, and its output appears once complete. The same command skips files already
    predicted by the same model with the same settings. Unreadable files are reported, and the others predicted.
    """
    from mpad.scale.columns import PredictOptions, load_column_predictor
    from mpad.scale.predictor import unique_column

    options = PredictOptions(proba, top, reject_below, threshold)
    if out is not None and out_file is None and out.suffix and not out.is_dir():
        out, out_file = None, out
    check_out(out_file, force)
    remembered = remembered_columns(model)
    if out is not None:
        if out_file is not None or form is not Format.table or device != "cpu" or data == "-":
            raise InputError(
                "a folder gets Parquet files, predicted on a CPU: leave out --format, --out, --device and -"
            )
        if address is not None and engine is Engine.local:
            raise InputError("--address is for --engine ray")
        _into_folder(model, data, out, text, remembered, options, tokenizer, (engine, workers, address))
        return
    if workers is not None or engine is not Engine.local or address is not None:
        raise InputError("--workers, --engine and --address need a folder to write to: mpad predict MODEL DATA OUT")
    stream = open_rows(data, text, remembered)
    predictor = load_column_predictor(model, options, device, tokenizer)
    at, whole = stream.text_at, form is not Format.table or out_file is not None
    added = [unique_column(name, stream.names if whole else ()) for name in predictor.fields]

    def predict_rows() -> Iterator[list[Any]]:
        from mpad.cli.progress import track_chunks

        for chunk in track_chunks(stream.chunks, stream.total):
            columns = predictor.predict([str(row[at]) for row in chunk])
            if predictor.many and not as_lists:
                columns[0] = [", ".join(labels) for labels in columns[0]]
            for row, cells in zip(chunk, zip(*columns, strict=True), strict=True):
                yield [*row, *cells] if whole else [*cells, row[at]]
            sys.stdout.flush()

    as_lists = form is Format.jsonl if out_file is None else out_file.suffix.lower() in (".jsonl", ".parquet")
    names = [*stream.names, *added] if whole else [*added, "text"]
    show_rows(names, predict_rows(), form, out_file, spreadsheet)
    _print_word_coverage(predictor.words)


def _print_word_coverage(words: "Counter[str]") -> None:
    total, known = words["all"], words["all"] - words["unknown"]
    if words["empty"]:
        typer.echo(f"warning: the model reads no word of {words['empty']:,} documents; ignore their labels", err=True)
    if total:
        typer.echo(f"the model knows {known:,} of {total:,} words ({100 * known / total:.0f} %)", err=True)


def _into_folder(
    model: Path,
    data: str,
    out: Path,
    text: list[str] | None,
    remembered: ReadColumns,
    options: "PredictOptions",
    tokenizer: str | None,
    execution: tuple[Engine, int | None, str | None],
) -> None:
    """Predict files into a folder, one Parquet file per input file."""
    from mpad.scale.job import make_job, make_tasks

    column = one_column(text, "--text") or remembered.text
    tasks = make_tasks(data, out)
    first = choose_columns(tasks[0].source, one_column(text, "--text"), None, False, remembered)
    if first is not None and column != first.text:
        column = None  # no column of the training data: guess it per file
    job = make_job(model, column, options, tokenizer)
    _predict_files(job, tasks, lambda left: _run_engine(job, left, *execution))


def _run_engine(
    job: "Job", tasks: "list[Task]", engine: Engine, workers: int | None, address: str | None
) -> "Iterator[Outcome]":
    if engine is Engine.ray:
        from mpad.scale import ray

        return ray.score_files(job, tasks, workers, address)
    from mpad.inference.fused import cores
    from mpad.scale import pool

    return pool.score_files(job, tasks, workers or cores())


def _predict_files(job: "Job", tasks: "list[Task]", outcomes: "Callable[[list[Task]], Iterator[Outcome]]") -> None:
    """Predict the remaining files and report the result."""
    left = [task for task in tasks if not job.is_done(task)]
    folder = tasks[0].out.parent
    if len(left) < len(tasks):
        typer.echo(f"{len(tasks) - len(left):,} of {len(tasks):,} files are done already in {folder}", err=True)
    older = sum(task.out.exists() for task in left)
    if older:
        reason = f"{older:,} files in {folder} are from another model, other settings or other documents"
        typer.echo(f"{reason}, and are replaced", err=True)
    rows, failed = 0, 0
    from mpad.cli.progress import file_bar

    with file_bar(len(left)) as advance:
        for outcome in outcomes(left) if left else ():
            if outcome.fatal:
                raise StoreError(outcome.error)
            advance(outcome.rows)
            rows += outcome.rows
            if outcome.error is not None:
                failed += 1
                typer.echo(f"mpad: {printable(' '.join(outcome.error.split()))}", err=True)
    typer.echo(f"{len(left) - failed:,} files with {rows:,} rows written to {folder}", err=True)
    if failed:
        raise InputError(f"{failed:,} of {len(tasks):,} files could not be scored; fix them and run this again")
