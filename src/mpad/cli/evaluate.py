"""`mpad evaluate`: scores of a model on labeled documents."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Console
from typer import Argument, Option

from mpad.cli.inputs import Device, Force, LabelColumns, ModelFolder, OwnTokenizer, Reader, Separator, TextColumn
from mpad.cli.output import Format, FormatOption, OutFile, check_new, check_out, print_rows, show_rows
from mpad.data.readers import Documents
from mpad.errors import InputError
from mpad.text.printable import printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpad.evaluate.class_scores import ClassScores
    from mpad.evaluate.label_scores import LabelScores

_MIN_HEADER = 6  # letters of a class name in a column header
_AUTO = "auto"  # slices that need no column
_MAX_CONFUSIONS = 20  # listed if the matrix is too wide


def run(
    model: ModelFolder,
    data: Annotated[str | None, Argument(help="Data file or named dataset; not used with --behaviour.")] = None,
    text: TextColumn = None,
    label: LabelColumns = None,
    separator: Separator = None,
    plot: Annotated[
        Path | None,
        Option(help="Plot confusions, calibration and accuracy over coverage to this file (.png, .svg or .pdf)."),
    ] = None,
    behaviour: Annotated[
        bool, Option("--behaviour", help="Test a sentiment model on 200 minimal pairs: negation, word order …")
    ] = False,
    slices: Annotated[
        list[str] | None,
        Option(help="Column whose values are compared, or auto: class, number of words, and topic. Repeatable."),
    ] = None,
    mistakes: Annotated[
        Path | None,
        Option(help="Write the mistakes, most confident first, to this file: .csv, .tsv, .jsonl, .parquet."),
    ] = None,
    positive: Annotated[str | None, Option(help="With --behaviour: the positive class; guessed by default.")] = None,
    form: FormatOption = Format.table,
    device: Device = "auto",
    tokenizer: OwnTokenizer = None,
    out: OutFile = None,
    force: Force = False,
) -> None:
    """Evaluate a model on labeled documents: accuracy, macro-F1, scores per class and the confusion matrix.

    For multi-label data: F1 per label, micro-F1 and macro-F1.

    Example: `mpad evaluate my-model test.csv`

    Example: `mpad evaluate my-model test.csv --plot reliability.png`

    Example: `mpad evaluate my-model test.csv --slices source --slices auto --mistakes mistakes.csv`

    Example: `mpad evaluate my-model --behaviour`

    The expected calibration error is the mean distance between the confidence and the accuracy of predictions.

    With --format jsonl or csv, one row per class, then one named (all) with macro-averages and accuracy.
    """
    if behaviour:
        _test_behavior(model, device, tokenizer, positive, form)
        return
    if data is None:
        raise typer.BadParameter("name the documents to evaluate on, or give --behaviour", param_hint="DATA")
    check_new(plot, force)
    check_out(out, force)
    check_out(mistakes, force)
    reader = Reader.of(text, label, separator, model)
    columns = [name for name in slices or () if name != _AUTO]
    whole = reader.documents(data, "test", columns) if slices or mistakes is not None else None
    chunks = reader.labeled_chunks(data) if whole is None else [(whole.texts, whole.labels or [])]
    from mpad.evaluate.class_scores import ClassScores, evaluate_chunks
    from mpad.paper import zoo

    scores = evaluate_chunks(zoo.load(model, device, tokenizer), chunks)
    _print_scores(scores, form, plot, out)
    if whole is None:
        return
    if not isinstance(scores, ClassScores):
        raise InputError("--slices and --mistakes are for models with one label per document")
    if slices:
        _print_slices(scores, whole, _AUTO in slices)
    if mistakes is not None:
        names, rows = scores.mistakes(whole.texts, whole.ids)
        show_rows(names, rows, form, mistakes)


def _print_scores(scores: "ClassScores | LabelScores", form: Format, plot: Path | None, out: Path | None) -> None:
    """Print scores, or write those of each class to a file; labels unknown to the model count as mistakes."""
    from mpad.evaluate.calibration import plot_evaluation
    from mpad.evaluate.class_scores import ClassScores
    from mpad.evaluate.label_scores import plot_labels

    columns, rows = scores.table()
    if plot is not None:
        if isinstance(scores, ClassScores):
            plot_evaluation(plot, scores.classes, scores.matrix, scores.calibration(), scores.ranked())
        else:
            plot_labels(plot, scores)
        typer.echo(f"wrote {plot}", err=True)
    if scores.unknown:
        documents = {row[0]: row[4] for row in rows}
        shown = ", ".join(f"'{name}' ({documents[name]:,})" for name in scores.unknown[:5])
        typer.echo(f"labels that the model does not know, all counted as mistakes: {shown}", err=True)
    if form is not Format.table or out is not None:
        show_rows(columns, rows, form, out)
    if form is not Format.table:
        return
    for line in [*scores.lines(), ""]:
        typer.echo(printable(line))
    if isinstance(scores, ClassScores):
        print_rows(columns[:-1], [row[:-1] for row in rows[:-1]])  # the accuracy is printed above
        _print_confusions(scores.classes, scores.matrix)
    else:
        print_rows(columns, rows)


def _print_slices(scores: "ClassScores", documents: Documents, automatic: bool) -> None:
    """Print the accuracy of slices, those with most mistakes above the average first."""
    from mpad.evaluate.slices import automatic_columns, score_slices

    own = automatic_columns(documents.texts, scores.truth) if automatic else {}
    overall = scores.accuracy.value
    rows = [
        [one.column, one.value, one.documents, *one.accuracy, "weak" if one.is_weak(overall) else ""]
        for one in score_slices(scores.right, {**own, **documents.further})
    ]
    typer.echo("\nslices, those with most mistakes above the average first")
    print_rows(["column", "value", "documents", "accuracy", "low (95 %)", "high (95 %)", ""], rows)


def _print_confusions(classes: list[str], matrix: "NDArray[np.int64]") -> None:
    """Print the confusion matrix or, if it is wider than the terminal, the most frequent confusions."""
    names = [printable(name) for name in classes]
    width = (Console().width - max(map(len, names)) - 2) // len(names) - 2  # per column
    widest = max(len(str(matrix.max())), max(map(len, names)))
    heads = [name if len(name) <= width else name[: max(width - 1, 1)] + "…" for name in names]
    if width >= min(widest, max(len(str(matrix.max())), _MIN_HEADER)) and len(set(heads)) == len(heads):
        typer.echo("\nconfusion matrix (rows: true, columns: predicted)")
        rows = [[name, *map(int, row)] for name, row in zip(names, matrix, strict=True)]
        print_rows(["true", *heads], rows)
        return
    mistakes = np.where(np.eye(len(classes), dtype=bool), 0, matrix)
    largest = [
        place for place in np.argsort(-mistakes, axis=None, kind="stable")[:_MAX_CONFUSIONS] if mistakes.flat[place]
    ]
    typer.echo("\nmost frequent confusions (a matrix of all classes is wider than this terminal: --plot draws it)")
    pairs = (np.unravel_index(place, mistakes.shape) for place in largest)
    print_rows(
        ["true", "predicted", "documents"],
        [[classes[true], classes[predicted], int(mistakes[true, predicted])] for true, predicted in pairs],
    )


def _test_behavior(model: Path, device: str, tokenizer: str | None, positive: str | None, form: Format) -> None:
    """Print the share of minimal pairs that a sentiment model gets right."""
    from mpad.evaluate.behavior import check_behavior
    from mpad.paper import zoo

    classifier = zoo.load(model, device, tokenizer)
    if not hasattr(classifier, "predict_proba"):
        raise InputError(f"{model}: gives no probabilities, which --behaviour compares")
    rows = check_behavior(list(classifier.classes_), classifier.predict_proba, positive)
    columns = ["pairs of sentences", "number", "right", "low (95 %)", "high (95 %)", "ties", "both right"]
    print_rows(columns, [[row.category, row.pairs, *row.interval, row.ties, row.both] for row in rows], form)
    typer.echo("chance: right 0.5, both right 0.25", err=True)
