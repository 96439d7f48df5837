"""Progress of a training: one report per epoch, sent to any sink."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class EpochReport:
    """Result of one epoch. Without validation documents, accuracy and loss are those of training."""

    epoch: int  # from 1
    max_epochs: int
    train_loss: float
    validation_loss: float
    validation_accuracy: float
    seconds: float
    is_best: bool
    model: int = 0  # of several that train together
    watched_accuracy: float | None = None  # on documents that nothing is chosen by


Sink = Callable[[EpochReport], None]


def silent(report: EpochReport) -> None:
    """Ignore a report."""


def bar_columns(name: str) -> tuple[Any, ...]:
    """Return a bar's columns: name, bar, counts, last message, remaining time."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    said = TextColumn("{task.fields[said]}")
    return TextColumn(name), BarColumn(), MofNCompleteColumn(), said, TimeRemainingColumn()


def wants_bar(verbose: bool | Literal["auto"]) -> bool:
    """Return whether to show progress; "auto": on a terminal or in a notebook."""
    if verbose != "auto":
        return verbose
    from rich.console import Console

    console = Console(stderr=True)
    return console.is_terminal or console.is_jupyter


def with_bar(items: Iterable[Item], name: str, total: int, shown: bool) -> Iterator[Item]:
    """Yield items with a progress bar, on a terminal and in notebooks; elsewhere print one line at the end."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    live = shown and (console.is_terminal or console.is_jupyter)
    with Progress(*bar_columns(name), console=console, disable=not live) as progress:
        task = progress.add_task(name, total=total, said="")
        for item in items:
            yield item
            progress.advance(task)
    if shown and not live:
        console.print(f"{name}: {total:,}", highlight=False)


@contextmanager
def epoch_bar(
    networks: int = 1,
    show_accuracy: bool = True,
    mark_best: bool = True,
    measure: str = "accuracy",
    unit: str = "epoch",
) -> Iterator[Sink]:
    """Show a bar while networks train, on a terminal and in notebooks; elsewhere a line per epoch.

    Without `show_accuracy` lines have the loss only: the accuracy of a network that is one part of a model is not the
    model's. `measure` is the name of the accuracy, `unit` that of an epoch. `mark_best` marks epochs that are better
    than all before, if the best one is kept.
    """
    from rich.console import Console  # here: predicting does not need it
    from rich.progress import Progress

    console = Console(stderr=True)
    best = 0.0

    def describe(report: EpochReport) -> str:
        if not show_accuracy:
            return f"loss {report.train_loss:.4f}"
        return f"loss {report.train_loss:.4f}  held-out {measure} {report.validation_accuracy:.4f}"

    if not console.is_terminal and not console.is_jupyter:

        def print_line(report: EpochReport) -> None:
            mark = "  best so far" if show_accuracy and mark_best and report.is_best else ""
            epoch = f"{unit} {report.epoch:>3}/{report.max_epochs}"
            console.print(f"{epoch}  {describe(report)}  {report.seconds:.2f} s{mark}", highlight=False, soft_wrap=True)

        yield print_line
        return
    with Progress(*bar_columns("training"), console=console) as progress:
        task = progress.add_task("training", total=None, said="reading text and vectors …")

        def advance(report: EpochReport) -> None:
            nonlocal best
            best = max(best, report.validation_accuracy)
            said = describe(report) + (f"  best {best:.4f}" if show_accuracy and mark_best else "")
            done = report.epoch if networks == 1 else report.model * report.max_epochs + report.epoch
            progress.update(task, completed=done, total=networks * report.max_epochs, said=said)

        yield advance
