"""What training says of itself: one report an epoch, to any sink."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class EpochReport:
    """How one epoch went. Without validation documents, accuracy and loss are the training ones."""

    epoch: int  # from 1
    max_epochs: int
    train_loss: float
    validation_loss: float
    validation_accuracy: float
    seconds: float
    is_best: bool
    model: int = 0  # of several that train together
    watched_accuracy: float | None = None  # on documents that nothing is chosen by

    def __str__(self) -> str:
        mark = " *" if self.is_best else ""
        return (
            f"epoch {self.epoch:>3}/{self.max_epochs}  loss {self.train_loss:.4f}  "
            f"validation {self.validation_accuracy:.4f}  {self.seconds:.2f} s{mark}"
        )


Sink = Callable[[EpochReport], None]


def silent(report: EpochReport) -> None:
    """Say nothing."""


def bar_columns(name: str) -> tuple[Any, ...]:
    """A bar's parts: name, bar, how many of how many, what was said last, time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    said = TextColumn("{task.fields[said]}")
    return TextColumn(name), BarColumn(), MofNCompleteColumn(), said, TimeRemainingColumn()


def wants_bar(verbose: bool | Literal["auto"]) -> bool:
    """Whether to show progress; "auto": where somebody looks on, at a terminal or in a notebook."""
    if verbose != "auto":
        return verbose
    from rich.console import Console

    console = Console(stderr=True)
    return console.is_terminal or console.is_jupyter


def with_bar(items: Iterable[Item], name: str, total: int, shown: bool) -> Iterator[Item]:
    """Give items with a bar over them, on a terminal and in notebooks; elsewhere a line when all are there."""
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
def epoch_bar(networks: int = 1) -> Iterator[Sink]:
    """Show a bar while so many networks train, on a terminal and in notebooks; elsewhere a line an epoch."""
    from rich.console import Console  # here: answering does not need it
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal and not console.is_jupyter:
        said: list[str] = ["the network alone; validation: its accuracy on held-out documents; *: kept so far"]

        def say(report: EpochReport) -> None:
            console.print("\n".join([*said, str(report)]), highlight=False, soft_wrap=True)
            said.clear()

        yield say
        return
    with Progress(*bar_columns("training"), console=console) as progress:
        task = progress.add_task("training", total=None, said="reading text and vectors …")
        best = 0.0

        def advance(report: EpochReport) -> None:
            nonlocal best
            best = max(best, report.validation_accuracy)
            said = f"loss {report.train_loss:.3f}  validation {report.validation_accuracy:.3f}  best {best:.3f}"
            done = report.epoch if networks == 1 else report.model * report.max_epochs + report.epoch
            progress.update(task, completed=done, total=networks * report.max_epochs, said=said)

        yield advance
