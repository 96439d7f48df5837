"""`mpad doctor`: find wrong labels and other problems of labeled documents."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from mpad.cli.inputs import Data, Force, LabelColumn, Reader, TextColumn, one_column, text_column
from mpad.cli.output import Format, FormatOption, check_new, check_out, print_rows, show_rows, write_output
from mpad.cli.progress import progress_bar


def run(
    data: Data,
    text: TextColumn = None,
    label: LabelColumn = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Write a report to this file (.html).")] = None,
    corrections: Annotated[
        Path | None,
        Option(help="Write the suggested labels to this file, to be reviewed and then read by mpad fit --add (.csv)."),
    ] = None,
    slices: Annotated[
        list[str] | None, Option(help="Column whose values are compared, such as the source. Repeatable.")
    ] = None,
    folds: Annotated[int, Option(min=2, max=20, help="Folds of the cross-validation.")] = 3,
    form: FormatOption = Format.table,
    force: Force = False,
) -> None:
    """Find labels that are probably wrong, and what else makes data hard to learn.

    Example: `mpad doctor tickets.csv`

    Example: `mpad doctor tickets.csv --out doctor.html --corrections corrections.csv`

    Example: `mpad doctor tickets.csv --slices source --slices year`

    Every document is predicted by a model that was not trained on it. Reported are suspicious labels with the words
    behind them, near-duplicates with different labels, outliers, documents in another language, classes that may be
    one, and groups of documents that are predicted badly: by class, length, topic, and the values of --slices.

    Remove the suggestions that are wrong from the file of --corrections, then: `mpad fit tickets.csv --add
    corrections.csv --out my-model`. For a quick check without a model: `mpad data check`.
    """
    check_new(out, force, (".html", ".htm"))
    check_out(corrections, force)
    reader = Reader(text_column(text), one_column(label, "--label"))
    documents = reader.documents(data, "train", slices or [])
    from mpad.evaluate.doctor import examine, to_html

    texts, labels = documents.texts, documents.labels or []
    with progress_bar("examining", folds + 1) as done:
        diagnosis = examine(texts, labels, columns=documents.further, folds=folds, done=done)
    names, rows = diagnosis.table()
    print_rows(names, rows, form)
    typer.echo(f"labels predicted by models that had not seen the documents: {diagnosis.accuracy}", err=True)
    if corrections is not None:
        names, rows = diagnosis.errors.table(documents.ids)
        show_rows(names, rows, form, corrections)
        typer.echo(f"review them, then: mpad fit {data} --add {corrections} --out MODEL", err=True)
    if out is not None:
        page = to_html(diagnosis, str(data), documents.ids)
        write_output(out, page.encode("utf-8", "replace"), f"{len(documents):,} documents")
