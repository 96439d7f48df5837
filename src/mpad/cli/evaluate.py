"""`mpad evaluate`: how good a model is on labelled documents."""

from collections.abc import Iterable
from dataclasses import dataclass
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
    labelled,
    one_column,
    remembered_columns,
    remembered_separator,
    show_columns,
)
from mpad.cli.output import Format, FormatOption, OutFile, check_new, check_out, print_rows, show_rows
from mpad.data.readers import ReadColumns, choose_columns
from mpad.text.printable import printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpad.evaluate.calibration import Calibration

_SHORT = 6  # letters of a class that a column's head has at least
_CONFUSIONS = 20  # that are listed where a matrix is too wide


def run(
    model: ModelFolder,
    data: Annotated[str | None, typer.Argument(help="A data file or a dataset's name; not for --behaviour.")] = None,
    text: TextColumn = None,
    label: LabelColumns = None,
    separator: Separator = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw confusions, reliability, and accuracy by coverage, to this file (.png, .svg, .pdf)."),
    ] = None,
    behaviour: Annotated[
        bool,
        typer.Option("--behaviour", help="Ask a sentiment model 200 minimal pairs: negation, word order …"),
    ] = False,
    positive: Annotated[str | None, typer.Option(help="The positive class, for --behaviour.")] = None,
    form: FormatOption = Format.table,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda …")] = "auto",
    tokenizer: OwnTokenizer = None,
    out: OutFile = None,
    force: Force = False,
) -> None:
    """Compare predictions with labels: accuracy, macro-F1, a table per class and the confusion matrix.

    Of many labels a document: F1 of each label, of all together (micro) and their mean (macro).

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
    check_new(plot, force)
    check_out(out, force)
    columns = remembered_columns(model)
    documents = _documents(data, text, label, separator or remembered_separator(model), columns)
    from mpad.paper import zoo

    classifier = zoo.load(model, device, tokenizer)
    if classifier.labels_.multilabel:
        _evaluate_many(classifier, documents, form, plot, out)
    else:
        _evaluate_one(classifier, documents, form, plot, out)


Documents = Iterable[tuple[list[str], list[Any]]]  # texts and labels, some at a time


def _documents(
    data: str, text: list[str] | None, label: list[str] | None, separator: str | None, remembered: ReadColumns
) -> Documents:
    """Read DATA in parts; large files as they are scored, others before."""
    from mpad.cli.progress import in_chunks
    from mpad.cli.streamed import streams

    if streams(data, None, {}):
        from mpad.data.streams import Columns, pieces_of

        chosen = choose_columns(data, one_column(text, "--text"), label, remembered=remembered)
        assert chosen is not None and chosen.text is not None  # only tables are streamed
        show_columns(data, chosen)
        labels = chosen.labels[0] if len(chosen.labels) == 1 else chosen.labels
        pieces = pieces_of(data, Columns(chosen.text, labels, separator))
        return ((chunk.texts, chunk.labels) for piece in pieces for chunk in piece.chunks())
    pairs = list(zip(*labelled(data, text, label, "test", separator, remembered), strict=True))
    return (([one for one, _ in chunk], [own for _, own in chunk]) for chunk in in_chunks(pairs))


def _evaluate_one(classifier: Any, documents: Documents, form: Format, plot: Path | None, out: Path | None) -> None:
    """One label a document; a label that the model does not know is a mistake, whatever it says."""
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    from mpad.estimator.intervals import wilson
    from mpad.evaluate.calibration import plot_evaluation

    known = [str(name) for name in classifier.classes_]
    judged = _judge(classifier, documents, known)
    labels, predicted, calibration = judged.truth, judged.predicted, judged.calibration()
    unknown = sorted(set(labels) - set(known))
    classes = [*known, *unknown]
    matrix = confusion_matrix(labels, predicted, labels=classes)
    if plot is not None:
        plot_evaluation(plot, classes, matrix, calibration)
        typer.echo(f"wrote {plot}", err=True)
    precision, recall, f1, support = precision_recall_fscore_support(
        labels, predicted, labels=classes, zero_division=0.0
    )
    accuracy = float(np.mean(np.array(labels) == np.array(predicted)))
    macro = float(np.mean(f1[support > 0]))
    interval = wilson(accuracy * len(labels), len(labels))
    columns = ["class", "precision", "recall", "f1", "documents"]
    rows: list[list[str | float | int | None]] = [
        [name, float(p), float(r), float(f), int(n)]
        for name, p, r, f, n in zip(classes, precision, recall, f1, support, strict=True)
    ]
    if unknown:
        shown = ", ".join(f"'{name}' ({labels.count(name):,})" for name in unknown[:5])
        typer.echo(f"labels that the model does not know, all counted as mistakes: {shown}", err=True)
    if form is not Format.table or out is not None:
        there = support > 0
        means = float(np.mean(precision[there])), float(np.mean(recall[there])), macro
        together = ["(all)", *means, len(labels), accuracy]
        show_rows([*columns, "accuracy"], [*[[*row, None] for row in rows], together], form, out)
    if form is not Format.table:
        return
    between = f"95 % interval {interval.low:.4f} to {interval.high:.4f}"
    typer.echo(f"accuracy  {accuracy:.4f} ({between}, {len(labels):,} documents)")
    majority = int(support.argmax())
    typer.echo(f"macro-F1  {macro:.4f}")
    typer.echo(f'always "{printable(classes[majority])}"  {support[majority] / len(labels):.4f}')
    if calibration is not None:
        shares, surest = calibration.coverage()
        before = judged.before(calibration)
        typer.echo(f"expected calibration error  {calibration.error:.4f}{before}")
        half = f"{surest[np.abs(shares - 0.5).argmin()]:.4f}"
        typer.echo(f"accuracy of the most confident half  {half}")
    typer.echo("")
    print_rows(columns, rows, form)
    _print_confusions(classes, matrix)


def _print_confusions(classes: list[str], matrix: "NDArray[np.int64]") -> None:
    """Print the matrix or, if that is wider than the terminal, its largest numbers off the diagonal."""
    names = [printable(name) for name in classes]
    width = (Console().width - max(map(len, names)) - 2) // len(names) - 2  # for each column
    widest = max(len(str(matrix.max())), max(map(len, names)))
    heads = [name if len(name) <= width else name[: max(width - 1, 1)] + "…" for name in names]
    if width >= min(widest, max(len(str(matrix.max())), _SHORT)) and len(set(heads)) == len(heads):
        typer.echo("\nconfusion matrix (rows: true, columns: predicted)")
        rows = [[name, *map(int, row)] for name, row in zip(names, matrix, strict=True)]
        print_rows(["true", *heads], rows, Format.table)
        return
    mistakes = np.where(np.eye(len(classes), dtype=bool), 0, matrix)
    largest = [place for place in np.argsort(-mistakes, axis=None, kind="stable")[:_CONFUSIONS] if mistakes.flat[place]]
    typer.echo("\nmost frequent confusions (a matrix of all classes is wider than this terminal: --plot draws it)")
    pairs = (np.unravel_index(place, mistakes.shape) for place in largest)
    print_rows(
        ["true", "predicted", "documents"],
        [[classes[true], classes[predicted], int(mistakes[true, predicted])] for true, predicted in pairs],
        Format.table,
    )


def _evaluate_many(classifier: Any, documents: Documents, form: Format, plot: Path | None, out: Path | None) -> None:
    """Many labels a document: F1 of each label, and of all together."""
    from mpad.evaluate.label_scores import plot_labels, score_labels

    truth: list[Any] = []
    answers = []
    for texts, labels in documents:
        truth += labels
        answers.append(classifier.predict(texts))
    scores = score_labels(classifier.labels_, truth, np.concatenate(answers) > 0)
    unknown = scores.names[len(classifier.labels_) :]
    if unknown:
        typer.echo(f"labels that the model does not know, all missed: {', '.join(unknown[:5])}", err=True)
    columns = ["class", "precision", "recall", "f1", "documents", "right", "missed", "wrongly given"]
    counts = zip(scores.right.tolist(), scores.missed.tolist(), scores.wrong.tolist(), strict=True)
    each = zip(scores.names, scores.precision, scores.recall, scores.f1, counts, strict=True)
    rows: list[list[Any]] = [[name, float(p), float(r), float(f), n[0] + n[1], *n] for name, p, r, f, n in each]
    total = [sum(row[place] for row in rows) for place in (4, 5, 6, 7)]
    rows += [["(micro)", *scores.micro, *total], ["(macro)", *scores.macro, *total]]
    if form is Format.table:
        for name, measured in (("micro-F1", scores.micro_f1), ("macro-F1", scores.macro_f1)):
            typer.echo(f"{name}  {measured.value:.4f} ± {measured.margin:.4f} (95 %, {len(truth):,} documents)")
        exact = scores.exact
        between = f"95 % interval {exact.low:.4f} to {exact.high:.4f}"
        typer.echo(f"all labels of a document right  {exact.value:.4f} ({between})\n")
    show_rows(columns, rows, form, None)
    if out is not None:
        show_rows(columns, rows, form, out)
    if plot is not None:
        plot_labels(plot, scores)
        typer.echo(f"wrote {plot}", err=True)


@dataclass(frozen=True)
class _Judged:
    """What a model said of documents, and what is true."""

    truth: list[str]
    predicted: list[str]
    sure: "NDArray[np.float64] | None"  # (documents,), the probability of the label; None where there is none
    unscaled: "NDArray[np.float64] | None"  # the same before the temperature, where that alone was fitted
    temperature: float | None

    def calibration(self) -> "Calibration | None":
        """How far probabilities hold."""
        from mpad.evaluate.calibration import Calibration

        right = np.array(self.truth) == np.array(self.predicted)
        return None if self.sure is None else Calibration(self.sure, right)

    def before(self, calibration: "Calibration") -> str:
        """What the error was before the temperature."""
        if self.unscaled is None:
            return ""
        error = type(calibration)(self.unscaled, calibration.right).error
        return f"; before its temperature of {self.temperature:.2f}, {error:.4f}"


def _judge(classifier: Any, documents: Documents, classes: list[str]) -> _Judged:
    from mpad.errors import InputError

    temperature = getattr(classifier, "card_", {}).get("temperature")
    fitted = isinstance(temperature, float) and 0 < temperature < float("inf")
    truth: list[str] = []
    predicted: list[str] = []
    sure, unscaled = [], []
    for texts, labels in documents:
        if any(isinstance(label, list) for label in labels):
            raise InputError("the model gives one label a document, but these have lists of labels")
        truth += [str(label) for label in labels]
        if not hasattr(classifier, "predict_proba"):
            predicted += [str(name) for name in classifier.predict(texts)]
            continue
        probabilities = classifier.predict_proba(texts)
        predicted += [classes[column] for column in probabilities.argmax(1)]
        sure.append(probabilities.max(1))
        if fitted:  # logits are logarithms of these, but for a number that all classes share
            raised = probabilities**temperature
            unscaled.append((raised / raised.sum(1, keepdims=True)).max(1))
    joined = [np.concatenate(parts) if parts else None for parts in (sure, unscaled)]
    return _Judged(truth, predicted, joined[0], joined[1], temperature if fitted else None)


def _behave(model: Path, device: str, tokenizer: str | None, positive: str | None, form: Format) -> None:
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
