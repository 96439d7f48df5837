"""`mpad predict`: label new documents."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from mpad.cli.inputs import Address, EngineName, EngineOption, Force, ModelFolder, OwnTokenizer, Reader, TextColumn
from mpad.cli.options import Parameters, expand_parameters
from mpad.cli.output import Format, FormatOption, OutFile, Spreadsheet, check_out, show_rows
from mpad.cli.progress import progress_bar, track
from mpad.data.readers import choose_columns
from mpad.data.tables import JOIN
from mpad.errors import DataFileError, InputError, StoreError
from mpad.text.printable import printable

if TYPE_CHECKING:
    from collections import Counter

    from mpad.scale.columns import PredictOptions
    from mpad.scale.job import Job, Outcome, Task


@expand_parameters
def run(
    model: ModelFolder,
    data: Annotated[
        str,
        Argument(
            help="Data file, quoted document, or - for standard input, one document per line; with OUT, also a quoted "
            "pattern or a folder of data files."
        ),
    ] = "-",
    out: Annotated[
        Path | None,
        Argument(help="Folder for one Parquet file per file of DATA; or a file, as with --out.", show_default=False),
    ] = None,
    out_file: OutFile = None,
    force: Force = False,
    spreadsheet: Spreadsheet = False,
    text: TextColumn = None,
    form: FormatOption = Format.table,
    *,
    settings: Annotated[
        dict[str, Any], Parameters("mpad.scale.predictor:Predictor", "proba top reject_below threshold")
    ],
    device: Annotated[str, Option(help="Device: cpu predicts with NumPy; cuda and auto import torch.")] = "cpu",
    tokenizer: OwnTokenizer = None,
    workers: Annotated[
        int | None, Option(min=1, help="With OUT: processes, with one file each at a time; by default one per core.")
    ] = None,
    engine: EngineOption = EngineName.local,
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

    options = PredictOptions(**settings)
    if out is not None and out_file is None and out.suffix and not out.is_dir():
        out, out_file = None, out
    check_out(out_file, force)
    reader = Reader.of(text, model=model)
    if out is not None:
        if out_file is not None or form is not Format.table or device != "cpu" or data == "-":
            raise InputError(
                "a folder gets Parquet files, predicted on a CPU: leave out --format, --out, --device and -"
            )
        if address is not None and engine is EngineName.local:
            raise InputError("--address is for --engine ray")
        job, tasks = _make_job(model, data, out, reader, options, tokenizer)
        _predict_files(job, tasks, lambda left: _run_engine(job, left, engine, workers, address))
        return
    if workers is not None or engine is not EngineName.local or address is not None:
        raise InputError("--workers, --engine and --address need a folder to write to: mpad predict MODEL DATA OUT")
    table = reader.rows(data)
    predictor = load_column_predictor(model, options, device, tokenizer)
    at, whole = table.text_at, form is not Format.table or out_file is not None
    own = len(table.names) - (JOIN in table.names[at] and at == len(table.names) - 1)  # without the joined column
    added = [unique_column(name, table.names if whole else ()) for name in predictor.fields]
    few = table.total is None or table.total < 4

    def predict_rows() -> Iterator[list[Any]]:
        for chunk in track(table.chunks, "predicting", None if few or sys.stdout.isatty() else table.total):
            columns = predictor.predict([str(row[at]) for row in chunk])
            if predictor.many and not as_lists:
                columns[0] = [", ".join(labels) for labels in columns[0]]
            for row, cells in zip(chunk, zip(*columns, strict=True), strict=True):
                yield [*row[:own], *cells] if whole else [*cells, row[at]]
            sys.stdout.flush()

    as_lists = form is Format.jsonl if out_file is None else out_file.suffix.lower() in (".jsonl", ".parquet")
    names = [*table.names[:own], *added] if whole else [*added, "text"]
    show_rows(names, predict_rows(), form, out_file, spreadsheet)
    _print_word_coverage(predictor.words)


def _print_word_coverage(words: "Counter[str]") -> None:
    total, known = words["all"], words["all"] - words["unknown"]
    if words["empty"]:
        typer.echo(f"warning: the model reads no word of {words['empty']:,} documents; ignore their labels", err=True)
    if total:
        typer.echo(f"the model knows {known:,} of {total:,} words ({100 * known / total:.0f} %)", err=True)


def _make_job(
    model: Path, data: str, out: Path, reader: Reader, options: "PredictOptions", tokenizer: str | None
) -> "tuple[Job, list[Task]]":
    """Return the job of predicting files into a folder, and a task per file."""
    from mpad.scale.job import make_job, make_tasks

    tasks = make_tasks(data, out)
    column = reader.text or (reader.remembered.text if reader.remembered else None)
    chosen = _choose_text(reader, [task.source for task in tasks])
    if chosen is not None and column != chosen:
        column = None  # no column of the training data: guess it per file
    return make_job(model, column, options, tokenizer), tasks


def _choose_text(reader: Reader, files: list[Path]) -> str | None:
    """Return the text column of the first readable file; unreadable ones are reported when their turn comes."""
    for number, file in enumerate(files, 1):
        try:
            columns = choose_columns(file, reader.text, None, False, reader.remembered)
        except DataFileError:
            if number == len(files):
                raise
        else:
            return columns.text if columns is not None else None
    return None


def _run_engine(
    job: "Job", tasks: "list[Task]", engine: EngineName, workers: int | None, address: str | None
) -> "Iterator[Outcome]":
    if engine is EngineName.ray:
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
    with progress_bar("files", len(left)) as advance:
        for outcome in outcomes(left) if left else ():
            if outcome.fatal:
                raise StoreError(outcome.error)
            rows += outcome.rows
            advance(f"{rows:,} rows")
            if outcome.error is not None:
                failed += 1
                typer.echo(f"mpad: {printable(' '.join(outcome.error.split()))}", err=True)
    typer.echo(f"{len(left) - failed:,} files with {rows:,} rows written to {folder}", err=True)
    if failed:
        raise InputError(f"{failed:,} of {len(tasks):,} files could not be scored; fix them and run this again")
