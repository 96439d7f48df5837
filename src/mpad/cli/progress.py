"""Progress bars on standard error, shown on a terminal only."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.progress import Progress, track

from mpad.training.progress import EpochReport, Sink, bar_columns

if TYPE_CHECKING:
    from mpad.paper.experiments.records import Record


Item = TypeVar("Item")


def track_chunks(chunks: Iterable[Item], total: int | None) -> Iterator[Item]:
    """Yield chunks with a progress bar, unless they are few or the output itself goes to the terminal."""
    console = Console(stderr=True)
    quiet = not console.is_terminal or sys.stdout.isatty() or total is None or total < 4
    yield from track(chunks, "predicting", total, console=console, transient=True, disable=quiet)


def iter_chunks(texts: list[Item], size: int = 2048) -> Iterator[list[Item]]:
    """Yield documents in chunks, with a progress bar if there are many."""
    console = Console(stderr=True)
    chunks = [texts[start : start + size] for start in range(0, len(texts), size)]
    quiet = not console.is_terminal or len(chunks) < 4
    yield from track(chunks, description="reading", console=console, transient=True, disable=quiet)


@contextmanager
def run_bar(total: int) -> Iterator[tuple[Sink, Callable[["Record"], None]]]:
    """Show a progress bar over the runs of an experiment, and print a line per finished run."""
    console = Console(stderr=True)
    with Progress(*bar_columns("running"), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("running", total=total, said="")

        def advance(report: EpochReport) -> None:
            progress.update(task, said=f"epoch {report.epoch}  validation {report.validation_accuracy:.3f}")

        def done(record: "Record") -> None:
            progress.advance(task)
            console.print(str(record), highlight=False, soft_wrap=True)

        yield advance, done


@contextmanager
def document_bar(total: int, title: str) -> Iterator[Callable[[], None]]:
    """Show a progress bar over documents."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=total)
        yield lambda: progress.advance(task)


@contextmanager
def file_bar(total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar over files, with the number of rows so far."""
    console, rows = Console(stderr=True), 0
    with Progress(*bar_columns("files"), console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("files", total=total, said="")

        def advance(more: int) -> None:
            nonlocal rows
            rows += more
            progress.update(task, advance=1, said=f"{rows:,} rows")

        yield advance
