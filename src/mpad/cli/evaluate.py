"""`mpad evaluate`: scores of a model on labeled documents."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Console
from typer import Argument, Option

from mpad.cli.inputs import Device, Force, LabelColumns, ModelFolder, OwnTokenizer, Reader, Separator, TextColumn
from mpad.cli.output import Format, FormatOption, OutFile, check_new, check_out, print_rows, show_rows
from mpad.text.printable import printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpad.evaluate.class_scores import ClassScores
    from mpad.evaluate.label_scores import LabelScores

_MIN_HEADER = 6  # letters of a class name in a column header
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
    documents = Reader.of(text, label, separator, model).labeled_chunks(data)
    from mpad.evaluate.class_scores import evaluate_chunks
    from mpad.paper import zoo

    _print_scores(evaluate_chunks(zoo.load(model, device, tokenizer), documents), form, plot, out)


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
    from mpad.errors import InputError
    from mpad.evaluate.behavior import check_behavior
    from mpad.paper import zoo

    classifier = zoo.load(model, device, tokenizer)
    if not hasattr(classifier, "predict_proba"):
        raise InputError(f"{model}: gives no probabilities, which --behaviour compares")
    rows = check_behavior(list(classifier.classes_), classifier.predict_proba, positive)
    columns = ["pairs of sentences", "number", "right", "low (95 %)", "high (95 %)", "ties", "both right"]
    print_rows(columns, [[row.category, row.pairs, *row.interval, row.ties, row.both] for row in rows], form)
    typer.echo("chance: right 0.5, both right 0.25", err=True)
