"""Progress bars on standard error: over epochs, and over documents."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    track,
)

from mpad.training.progress import EpochReport, Sink

if TYPE_CHECKING:
    from mpad.experiments.records import Record


def _columns(name: str) -> tuple[ProgressColumn, ...]:
    said = TextColumn("{task.fields[said]}")
    return TextColumn(name), BarColumn(), MofNCompleteColumn(), said, TimeRemainingColumn()


@contextmanager
def epoch_bar() -> Iterator[Sink]:
    """Show a bar while training; where standard error is no terminal, a line an epoch instead."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda report: console.print(str(report), highlight=False)
        return
    with Progress(*_columns("training"), console=console) as progress:
        task = progress.add_task("training", total=None, said="reading text and vectors …")
        best = 0.0

        def advance(report: EpochReport) -> None:
            nonlocal best
            best = max(best, report.validation_accuracy)
            said = f"loss {report.train_loss:.3f}  validation {report.validation_accuracy:.3f}  best {best:.3f}"
            progress.update(task, completed=report.epoch, total=report.max_epochs, said=said)

        yield advance


def in_chunks(texts: list[str], size: int = 2048) -> Iterator[list[str]]:
    """Give documents chunk by chunk, with a bar where there are many and somebody is watching."""
    console = Console(stderr=True)
    chunks = [texts[start : start + size] for start in range(0, len(texts), size)]
    quiet = not console.is_terminal or len(chunks) < 4
    yield from track(chunks, description="reading", console=console, transient=True, disable=quiet)


@contextmanager
def run_bar(total: int) -> Iterator[tuple[Sink, Callable[["Record"], None]]]:
    """Show a bar over the runs of an experiment, and a line for each that is done."""
    console = Console(stderr=True)
    with Progress(*_columns("running"), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("running", total=total, said="")

        def advance(report: EpochReport) -> None:
            progress.update(task, said=f"epoch {report.epoch}  validation {report.validation_accuracy:.3f}")

        def done(record: "Record") -> None:
            progress.advance(task)
            console.print(str(record), highlight=False, soft_wrap=True)

        yield advance, done


@contextmanager
def document_bar(total: int, said: str) -> Iterator[Callable[[], None]]:
    """Show a bar over documents that take a while each, where somebody is watching."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(said, total=total)
        yield lambda: progress.advance(task)
