"""`mpad evaluate`: how good a model is on labelled documents."""

from typing import Annotated

import numpy as np
import typer

from mpad.cli.inputs import Data, LabelColumn, ModelFolder, OwnTokenizer, TextColumn, labelled
from mpad.cli.output import Format, FormatOption, print_rows


def run(
    model: ModelFolder,
    data: Data,
    text: TextColumn = None,
    label: LabelColumn = None,
    form: FormatOption = Format.table,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda …")] = "auto",
    tokenizer: OwnTokenizer = None,
) -> None:
    """Compare predictions with labels: accuracy, macro-F1, a table per class and the confusion matrix.

    Example: `mpad evaluate my-model test.csv`

    With --format jsonl or csv, one row per class, then one named (all) with the macro-averages and accuracy.
    """
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
    predicted = [str(name) for chunk in in_chunks(texts) for name in classifier.predict(chunk)]
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
    typer.echo(f"macro-F1  {macro:.4f}\n")
    print_rows(columns, rows, form)
    typer.echo("\nconfusion matrix (rows: true, columns: predicted)")
    matrix = confusion_matrix(labels, predicted, labels=classes)
    numbers = [str(number) for number in range(1, len(classes) + 1)]
    print_rows(
        ["", "class", *numbers],
        [[number, name, *map(int, row)] for number, name, row in zip(numbers, classes, matrix, strict=True)],
        form,
    )
