"""`mpad evaluate`: scores of a model on labeled documents."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console

from mpad.cli.inputs import (
    Force,
    LabelColumns,
    ModelFolder,
    OwnTokenizer,
    Separator,
    TextColumn,
    one_column,
    read_labeled,
    remembered_columns,
    remembered_separator,
    show_columns,
)
from mpad.cli.output import Format, FormatOption, OutFile, check_new, check_out, print_rows, show_rows
from mpad.data.readers import ReadColumns, choose_columns
from mpad.text.printable import printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpad.evaluate.class_scores import ClassScores
    from mpad.evaluate.label_scores import LabelScores

_MIN_HEADER = 6  # letters of a class name in a column header
_MAX_CONFUSIONS = 20  # listed if the matrix is too wide


def run(
    model: ModelFolder,
    data: Annotated[str | None, typer.Argument(help="Data file or named dataset; not used with --behaviour.")] = None,
    text: TextColumn = None,
    label: LabelColumns = None,
    separator: Separator = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Plot confusions, calibration and accuracy over coverage to this file (.png, .svg or .pdf)."),
    ] = None,
    behaviour: Annotated[
        bool,
        typer.Option("--behaviour", help="Test a sentiment model on 200 minimal pairs: negation, word order …"),
    ] = False,
    positive: Annotated[
        str | None, typer.Option(help="With --behaviour: the positive class; by default it is recognized.")
    ] = None,
    form: FormatOption = Format.table,
    device: Annotated[str, typer.Option(help="Device: auto, cpu, cuda or cuda:N.")] = "auto",
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
    columns = remembered_columns(model)
    documents = _read_chunks(data, text, label, separator or remembered_separator(model), columns)
    from mpad.evaluate.class_scores import ClassScores, evaluate_chunks
    from mpad.paper import zoo

    scores = evaluate_chunks(zoo.load(model, device, tokenizer), documents)
    if isinstance(scores, ClassScores):
        _print_single_label(scores, form, plot, out)
    else:
        _print_multilabel(scores, form, plot, out)


Documents = Iterable[tuple[list[str], list[Any]]]  # chunks of texts and labels


def _read_chunks(
    data: str, text: list[str] | None, label: list[str] | None, separator: str | None, remembered: ReadColumns
) -> Documents:
    """Yield DATA in chunks; large files are read while they are scored."""
    from mpad.cli.progress import iter_chunks
    from mpad.cli.streamed import should_stream

    if should_stream(data, None, {}):
        from mpad.data.streams import Columns, list_pieces

        chosen = choose_columns(data, one_column(text, "--text"), label, remembered=remembered)
        assert chosen is not None and chosen.text is not None  # only tables are streamed
        show_columns(data, chosen)
        labels = chosen.labels[0] if len(chosen.labels) == 1 else chosen.labels
        pieces = list_pieces(data, Columns(chosen.text, labels, separator))
        return ((chunk.texts, chunk.labels) for piece in pieces for chunk in piece.chunks())
    pairs = list(zip(*read_labeled(data, text, label, "test", separator, remembered), strict=True))
    return (([one for one, _ in chunk], [own for _, own in chunk]) for chunk in iter_chunks(pairs))


def _print_single_label(scores: "ClassScores", form: Format, plot: Path | None, out: Path | None) -> None:
    """Print the scores of single-label predictions; labels unknown to the model count as mistakes."""
    from mpad.evaluate.calibration import plot_evaluation

    calibration, accuracy, n = scores.calibration(), scores.accuracy, len(scores.truth)
    if plot is not None:
        plot_evaluation(plot, scores.classes, scores.matrix, calibration)
        typer.echo(f"wrote {plot}", err=True)
    columns = ["class", "precision", "recall", "f1", "documents"]
    rows: list[list[str | float | int | None]] = [
        [name, float(p), float(r), float(f), int(n)]
        for name, p, r, f, n in zip(scores.classes, *scores.per_class, strict=True)
    ]
    if scores.unknown:
        shown = ", ".join(f"'{name}' ({scores.truth.count(name):,})" for name in scores.unknown[:5])
        typer.echo(f"labels that the model does not know, all counted as mistakes: {shown}", err=True)
    if form is not Format.table or out is not None:
        overall = ["(all)", *scores.macro, n, accuracy.value]
        show_rows([*columns, "accuracy"], [*[[*row, None] for row in rows], overall], form, out)
    if form is not Format.table:
        return
    between = f"95 % interval {accuracy.low:.4f} to {accuracy.high:.4f}"
    typer.echo(f"accuracy  {accuracy.value:.4f} ({between}, {n:,} documents)")
    typer.echo(f"macro-F1  {scores.macro[2]:.4f}")
    name, share = scores.majority
    typer.echo(f'always "{printable(name)}"  {share:.4f}')
    if calibration is not None:
        shares, accuracies = calibration.coverage()
        unscaled = scores.calibration(unscaled=True)
        before = (
            "" if unscaled is None else f"; before its temperature of {scores.temperature:.2f}, {unscaled.error:.4f}"
        )
        typer.echo(f"expected calibration error  {calibration.error:.4f}{before}")
        half = f"{accuracies[np.abs(shares - 0.5).argmin()]:.4f}"
        typer.echo(f"accuracy of the most confident half  {half}")
    typer.echo("")
    print_rows(columns, rows, form)
    _print_confusions(scores.classes, scores.matrix)


def _print_confusions(classes: list[str], matrix: "NDArray[np.int64]") -> None:
    """Print the confusion matrix or, if it is wider than the terminal, the most frequent confusions."""
    names = [printable(name) for name in classes]
    width = (Console().width - max(map(len, names)) - 2) // len(names) - 2  # per column
    widest = max(len(str(matrix.max())), max(map(len, names)))
    heads = [name if len(name) <= width else name[: max(width - 1, 1)] + "…" for name in names]
    if width >= min(widest, max(len(str(matrix.max())), _MIN_HEADER)) and len(set(heads)) == len(heads):
        typer.echo("\nconfusion matrix (rows: true, columns: predicted)")
        rows = [[name, *map(int, row)] for name, row in zip(names, matrix, strict=True)]
        print_rows(["true", *heads], rows, Format.table)
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
        Format.table,
    )


def _print_multilabel(scores: "LabelScores", form: Format, plot: Path | None, out: Path | None) -> None:
    """Print the scores of multi-label predictions."""
    from mpad.evaluate.label_scores import plot_labels

    if scores.unknown:
        typer.echo(f"labels that the model does not know, all missed: {', '.join(scores.unknown[:5])}", err=True)
    columns = ["class", "precision", "recall", "f1", "documents", "right", "missed", "wrongly given"]
    counts = zip(scores.right.tolist(), scores.missed.tolist(), scores.wrong.tolist(), strict=True)
    each = zip(scores.names, scores.precision, scores.recall, scores.f1, counts, strict=True)
    rows: list[list[Any]] = [[name, float(p), float(r), float(f), n[0] + n[1], *n] for name, p, r, f, n in each]
    total = [sum(row[place] for row in rows) for place in (4, 5, 6, 7)]
    rows += [["(micro)", *scores.micro, *total], ["(macro)", *scores.macro, *total]]
    if form is Format.table:
        for name, measured in (("micro-F1", scores.micro_f1), ("macro-F1", scores.macro_f1)):
            typer.echo(f"{name}  {measured.value:.4f} ± {measured.margin:.4f} (95 %, {len(scores.truth):,} documents)")
        exact = scores.exact
        between = f"95 % interval {exact.low:.4f} to {exact.high:.4f}"
        typer.echo(f"all labels of a document right  {exact.value:.4f} ({between})\n")
    show_rows(columns, rows, form, None)
    if out is not None:
        show_rows(columns, rows, form, out)
    if plot is not None:
        plot_labels(plot, scores)
        typer.echo(f"wrote {plot}", err=True)


def _test_behavior(model: Path, device: str, tokenizer: str | None, positive: str | None, form: Format) -> None:
    """Print the share of minimal pairs that a sentiment model gets right."""
    from mpad.errors import InputError
    from mpad.evaluate.behavior import check_behavior
    from mpad.paper import zoo

    classifier = zoo.load(model, device, tokenizer)
    if not hasattr(classifier, "predict_proba"):
        raise InputError(f"{model}: gives no probabilities, which --behaviour compares")
    rows = check_behavior(list(classifier.classes_), classifier.predict_proba, positive)
    columns = ["pairs of sentences", "number", "right", "low (95 %)", "high (95 %)"]
    print_rows(columns, [[row.category, row.pairs, *row.interval] for row in rows], form)
