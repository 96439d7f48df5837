"""`mpad compare`: several models on the same folds of a dataset."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpad.cli.inputs import Data, Force, LabelColumns, Separator, TextColumn, drop_none, read_labeled, vector_option
from mpad.cli.output import Format, FormatOption, OutFile, check_new, check_out, show_rows
from mpad.registry import find

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mpad.evaluate.comparison import Scores


def run(
    data: Data,
    models: Annotated[
        str, typer.Option(help="Comma-separated names; the others are compared with the first.")
    ] = "mpad,tfidf-svm",
    text: TextColumn = None,
    label: LabelColumns = None,
    separator: Separator = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.")] = 5,
    vectors: Annotated[list[str] | None, typer.Option(help="Word vectors of the networks, as in `mpad fit`.")] = None,
    max_epochs: Annotated[
        int | None, typer.Option(help="Maximal number of epochs of the networks; by default that of each model.")
    ] = None,
    patience: Annotated[int | None, typer.Option(help="Epochs without improvement before a network stops.")] = None,
    device: Annotated[str, typer.Option(help="Device: auto, cpu, cuda or cuda:N.")] = "auto",
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(help="Plot accuracy, and accuracy over cost, to this file (.png, .svg or .pdf).")
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
    texts, labels = read_labeled(data, text, label, "train", separator)
    from rich.console import Console
    from rich.progress import Progress

    from mpad.evaluate.comparison import check_many_labels, compare
    from mpad.extras import require
    from mpad.paper import zoo

    options = {"device": device, "random_state": seed, **drop_none(max_epochs=max_epochs, patience=patience)}
    options |= vector_option(vectors)
    chosen = {name: zoo.make_with(name, options) for name in names}
    multilabel = any(isinstance(own, list) for own in labels)
    if multilabel:
        check_many_labels(chosen)
    for one in chosen.values():
        one.check_extras()
    if plot is not None:
        require("matplotlib", extra="plots")
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("comparing", total=len(chosen) * folds)

        def done(name: str, fold: int) -> None:
            progress.update(task, advance=1, description=f"{name}, fold {fold + 1}")
            if not console.is_terminal:
                console.print(f"{name}: fold {fold + 1} of {folds}", highlight=False)

        result = compare(chosen, texts, labels, folds=folds, seed=seed, done=done)
    columns = _MULTI_COLUMNS if multilabel else _COLUMNS
    exact = form is not Format.table or out is not None
    show_rows(columns, [_row(scores, multilabel, exact) for scores in result], form, out)
    if plot is not None:
        _draw(result, "micro-F1" if multilabel else "accuracy", plot)
        typer.echo(f"wrote {plot}", err=True)


_COLUMNS = ("model", "accuracy", "low 95%", "high 95%", "macro-F1", "fit s", "documents/s", "MB", "p")
_MULTI_COLUMNS = (
    "model",
    "micro-F1",
    "low 95%",
    "high 95%",
    "macro-F1",
    "all right",
    "fit s",
    "documents/s",
    "MB",
    "p",
)


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


def _draw(result: "list[Scores]", measure: str, file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, max(3.2, 0.6 + 0.5 * len(result))), layout="constrained", dpi=120)
    axes, fit, predict = figure.subplots(1, 3, width_ratios=[1.3, 1, 1])
    seconds, speeds = [float(one.fit_seconds.mean()) for one in result], [one.documents_a_second for one in result]
    _draw_cost(fit, result, seconds, "seconds to fit", cheap=min)
    _draw_cost(predict, result, speeds, "documents predicted per second", cheap=max)
    for each in (fit, predict):
        each.set_ylabel(f"{measure}, %")
    places = range(len(result))
    means = [100 * float(scores.micro_f1.mean()) for scores in result]
    intervals = [scores.interval for scores in result]
    below = [100 * (one.value - one.low) for one in intervals]
    above = [100 * (one.high - one.value) for one in intervals]
    axes.errorbar(means, places, xerr=[below, above], fmt="o", color="#0072b2", capsize=4)
    for place, scores in zip(places, result, strict=True):
        axes.plot(100 * scores.micro_f1, [place] * len(scores.micro_f1), ".", color="#999999", zorder=0)
    axes.set_yticks(list(places), [scores.name for scores in result])
    axes.invert_yaxis()
    axes.set_xlabel(f"{measure}, % (dots: folds; bars: 95 % intervals of the mean)")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(file)


def _draw_cost(
    axes: "Axes", result: "list[Scores]", costs: list[float], axis_label: str, cheap: Callable[..., float]
) -> None:
    """Plot scores over a cost, with a line through the models that no other beats in both."""
    means = [100 * float(scores.micro_f1.mean()) for scores in result]
    front = [
        (cost, mean)
        for cost, mean in zip(costs, means, strict=True)
        if not any(
            cheap(other, cost) == other and better >= mean and (other, better) != (cost, mean)
            for other, better in zip(costs, means, strict=True)
        )
    ]
    axes.plot(*zip(*sorted(front), strict=True), color="#bbbbbb", zorder=0)
    axes.plot(costs, means, "o", color="#0072b2")
    for scores, cost, mean in zip(result, costs, means, strict=True):
        axes.annotate(scores.name, (cost, mean), textcoords="offset points", xytext=(4, 4), fontsize=8)
    axes.set(xscale="log", xlabel=axis_label)
    axes.margins(0.2)
    axes.grid(alpha=0.3)
