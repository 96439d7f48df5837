"""`mpad compare`: several models on the same folds of a dataset."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from mpad.cli.inputs import (
    Data,
    Device,
    Force,
    LabelColumns,
    Reader,
    Seed,
    Separator,
    TextColumn,
    Vectors,
    vector_option,
)
from mpad.cli.options import Parameters, expand_parameters
from mpad.cli.output import Format, FormatOption, OutFile, check_new, check_out, show_rows
from mpad.cli.progress import progress_bar
from mpad.extras import require
from mpad.registry import find

if TYPE_CHECKING:
    from mpad.evaluate.comparison import Scores


@expand_parameters
def run(
    data: Data,
    models: Annotated[
        str, Option(help="Comma-separated names; the others are compared with the first.")
    ] = "mpad,tfidf-svm",
    text: TextColumn = None,
    label: LabelColumns = None,
    separator: Separator = None,
    folds: Annotated[int, Option(help="Folds of the cross-validation.")] = 5,
    vectors: Vectors = None,
    *,
    training: Annotated[dict[str, Any], Parameters("MPADClassifier", "max_epochs patience")],
    device: Device = "auto",
    seed: Seed = 0,
    plot: Annotated[
        Path | None, Option(help="Plot accuracy, and accuracy over cost, to this file (.png, .svg or .pdf).")
    ] = None,
    form: FormatOption = Format.table,
    out: OutFile = None,
    force: Force = False,
) -> None:
    """Compare models on the same folds: accuracy, macro-F1, speed, size, and significance of the difference.

    Example: `mpad compare reviews.csv --models mpad,cnn,tfidf-svm --folds 5 --plot accuracies.png`

    For multi-label data: micro-F1, macro-F1, and the share of documents with all labels right. Single-label models are
    refused.

    Example: `mpad compare tickets.csv --label tags --separator ';' --models mpad,tfidf-svm,linear-stack`

    p comes from a paired t-test over folds against the first model, corrected for training documents shared by folds.
    """
    names = [name.strip() for name in models.split(",") if name.strip()]
    for name in names:
        find(name)  # before reading the data
    check_out(out, force)
    check_new(plot, force)
    texts, labels = Reader.of(text, label, separator).labeled(data, "train")
    from mpad.evaluate.comparison import check_many_labels, compare, plot_scores
    from mpad.paper import zoo

    options = {"device": device, "random_state": seed, **training, **vector_option(vectors)}
    chosen = {name: zoo.make_with(name, options) for name in names}
    multilabel = any(isinstance(own, list) for own in labels)
    if multilabel:
        check_many_labels(chosen)
    for one in chosen.values():
        one.check_extras()
    if plot is not None:
        require("matplotlib", extra="plots")
    with progress_bar("comparing", len(chosen) * folds) as advance:

        def done(name: str, fold: int) -> None:
            advance(f"{name}, fold {fold + 1}")
            if not sys.stderr.isatty():
                typer.echo(f"{name}: fold {fold + 1} of {folds}", err=True)

        result = compare(chosen, texts, labels, folds=folds, seed=seed, done=done)
    measures = ["micro-F1" if multilabel else "accuracy", "low 95%", "high 95%", "macro-F1"]
    columns = ["model", *measures, *(["all right"] if multilabel else []), "fit s", "documents/s", "MB", "p"]
    exact = form is not Format.table or out is not None
    show_rows(columns, [_row(scores, multilabel, exact) for scores in result], form, out)
    if plot is not None:
        plot_scores(result, plot)
        typer.echo(f"wrote {plot}", err=True)


def _row(scores: "Scores", multilabel: bool, exact: bool) -> list[Any]:
    numbers = [
        *scores.interval,
        float(scores.macro_f1.mean()),
        *([float(scores.accuracy.mean())] if multilabel else []),
        round(float(scores.fit_seconds.mean()), 2),
        round(scores.documents_a_second),
        round(scores.megabytes, 2),
    ]
    p = scores.p_value
    return [scores.name, *numbers, (p if exact else "" if p is None else f"{p:.3f}")]
