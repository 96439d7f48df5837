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
from mpad.errors import InputError
from mpad.extras import require
from mpad.registry import find

if TYPE_CHECKING:
    from mpad.evaluate.comparison import Scores


@expand_parameters
def run(
    data: Data,
    models: Annotated[
        str, Option(help="Comma-separated names, or folders of saved models; the others are compared with the first.")
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

    Example: `mpad compare test.csv --models old-model,new-model`

    Saved models are not trained: they predict DATA, which none of them should have been trained on. Their difference
    has a 95 % interval by the paired bootstrap, and p by the exact McNemar test.

    Otherwise p comes from a paired t-test over folds against the first model, corrected for training documents shared
    by folds.
    """
    names = [name.strip() for name in models.split(",") if name.strip()]
    folders = [name for name in names if (Path(name) / "config.json").exists()]
    check_out(out, force)
    check_new(plot, force)
    if folders:
        _compare_saved(names, folders, data, Reader.of(text, label, separator, Path(folders[0])), plot, form, out)
        return
    for name in names:
        find(name)  # before reading the data
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


def _compare_saved(
    names: list[str], folders: list[str], data: str, reader: Reader, plot: Path | None, form: Format, out: Path | None
) -> None:
    """Print the scores of saved models on the same documents."""
    others = [name for name in names if name not in folders]
    if others:
        raise InputError(f"saved models are compared with saved models; '{others[0]}' is none (mpad fit --model)")
    if plot is not None or len(set(folders)) < 2:
        raise InputError("saved models: name at least two different folders, and leave out --plot")
    texts, labels = reader.labeled(data, "test")
    from mpad.evaluate.paired import compare_saved
    from mpad.paper import zoo

    rows = [
        [
            one.name,
            *one.accuracy,
            one.macro_f1,
            *(("", "", "") if one.difference is None else one.difference),
            one.better,
            one.worse,
            "" if one.p_value is None else one.p_value,
        ]
        for one in compare_saved({name: zoo.load(Path(name), "cpu") for name in names}, texts, labels)
    ]
    columns = ["model", "accuracy", "low 95%", "high 95%", "macro-F1", "difference", "low", "high"]
    show_rows([*columns, "only it right", "only first right", "p"], rows, form, out)


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
