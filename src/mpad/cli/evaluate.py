"""`mpad evaluate`: how good a model is on labelled documents."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from mpad.cli.inputs import LabelColumn, ModelFolder, OwnTokenizer, TextColumn, labelled
from mpad.cli.output import Format, FormatOption, print_rows

if TYPE_CHECKING:
    from mpad.estimators.calibration import Calibration


def run(
    model: ModelFolder,
    data: Annotated[str | None, typer.Argument(help="A data file or a dataset's name; not for --behaviour.")] = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw reliability, and accuracy by coverage, to this file (.png, .svg, .pdf).")
    ] = None,
    behaviour: Annotated[
        bool,
        typer.Option("--behaviour", help="Ask a sentiment model 200 minimal pairs: negation, word order …"),
    ] = False,
    positive: Annotated[str | None, typer.Option(help="The positive class, for --behaviour.")] = None,
    form: FormatOption = Format.table,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda …")] = "auto",
    tokenizer: OwnTokenizer = None,
) -> None:
    """Compare predictions with labels: accuracy, macro-F1, a table per class and the confusion matrix.

    Example: `mpad evaluate my-model test.csv`

    Example: `mpad evaluate my-model test.csv --plot reliability.png`

    Example: `mpad evaluate my-model --behaviour`

    The expected calibration error says how far probabilities are from the share of answers that are right.

    With --format jsonl or csv, one row per class, then one named (all) with the macro-averages and accuracy.
    """
    if behaviour:
        _behave(model, device, tokenizer, positive, form)
        return
    if data is None:
        raise typer.BadParameter("name the documents to evaluate on, or give --behaviour", param_hint="DATA")
    texts, labels = labelled(data, text, label, "test")
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    from mpad import zoo
    from mpad.cli.progress import in_chunks
    from mpad.errors import InputError
    from mpad.estimators.text_classifier import TextClassifier

    classifier = zoo.load(model, device, tokenizer)
    if isinstance(classifier, TextClassifier) and classifier.model_.labels.multilabel:
        raise InputError("this model gives many labels a document; evaluate takes one label a document")
    classes = [str(name) for name in classifier.classes_]
    unknown = sorted(set(labels) - set(classes))
    if unknown:
        raise InputError(f"{data}: label '{unknown[0]}' is not among the model's classes ({', '.join(classes)})")
    predicted, calibration = _predict(classifier, in_chunks(texts), classes, labels)
    if plot is not None:
        if calibration is None:
            raise InputError(f"{model}: gives no probabilities; there is nothing to plot")
        calibration.plot(plot)
    precision, recall, f1, support = precision_recall_fscore_support(
        labels, predicted, labels=classes, zero_division=0.0
    )
    accuracy = float(np.mean(np.array(labels) == np.array(predicted)))
    macro = float(np.mean(f1[support > 0]))
    half_width = 1.96 * float(np.sqrt(accuracy * (1 - accuracy) / len(labels)))
    columns = ["class", "precision", "recall", "f1", "documents"]
    rows: list[list[str | float | int | None]] = [
        [name, float(p), float(r), float(f), int(n)]
        for name, p, r, f, n in zip(classes, precision, recall, f1, support, strict=True)
    ]
    if form is not Format.table:
        there = support > 0
        means = float(np.mean(precision[there])), float(np.mean(recall[there])), macro
        print_rows(
            [*columns, "accuracy"], [*[[*row, None] for row in rows], ["(all)", *means, len(labels), accuracy]], form
        )
        return
    typer.echo(f"accuracy  {accuracy:.4f} ± {half_width:.4f} (95 %, {len(labels):,} documents)")
    typer.echo(f"macro-F1  {macro:.4f}")
    if calibration is not None:
        shares, surest = calibration.coverage()
        typer.echo(f"expected calibration error  {calibration.error:.4f}")
        half = f"{surest[shares.searchsorted(0.5)]:.4f}"
        typer.echo(f"accuracy of the surest half of the answers  {half}")
    typer.echo("")
    print_rows(columns, rows, form)
    typer.echo("\nconfusion matrix (rows: true, columns: predicted)")
    matrix = confusion_matrix(labels, predicted, labels=classes)
    numbers = [str(number) for number in range(1, len(classes) + 1)]
    print_rows(
        ["", "class", *numbers],
        [[number, name, *map(int, row)] for number, name, row in zip(numbers, classes, matrix, strict=True)],
        form,
    )


def _predict(
    classifier: Any, chunks: Iterable[list[str]], classes: list[str], labels: list[str]
) -> tuple[list[str], "Calibration | None"]:
    """Predicted labels; and, of a model with probabilities, how sure it was."""
    from mpad.estimators.calibration import Calibration

    if not hasattr(classifier, "predict_proba"):
        return [str(name) for chunk in chunks for name in classifier.predict(chunk)], None
    probabilities = np.concatenate([classifier.predict_proba(chunk) for chunk in chunks])
    predicted = [classes[column] for column in probabilities.argmax(1)]
    return predicted, Calibration(probabilities.max(1), np.array(labels) == np.array(predicted))


def _behave(model: Path, device: str, tokenizer: str | None, positive: str | None, form: Format) -> None:
    """Print the share of minimal pairs that a sentiment model gets right."""
    from mpad import zoo
    from mpad.errors import InputError
    from mpad.estimators.behaviour import check_behaviour

    classifier = zoo.load(model, device, tokenizer)
    if not hasattr(classifier, "predict_proba"):
        raise InputError(f"{model}: gives no probabilities, which --behaviour compares")
    rows = check_behaviour(list(classifier.classes_), classifier.predict_proba, positive)
    columns = ["pairs of sentences", "number", "right", "± (95 %)"]
    print_rows(columns, [[row.category, row.pairs, row.right, row.margin] for row in rows], form)
