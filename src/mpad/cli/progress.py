"""A progress bar over epochs, on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from mpad.training.progress import EpochReport, Sink


@contextmanager
def epoch_bar(max_epochs: int) -> Iterator[Sink]:
    """Show a bar while training; where standard error is no terminal, a line an epoch instead."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda report: console.print(str(report), highlight=False)
        return
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[said]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=max_epochs, said="")
        best = 0.0

        def advance(report: EpochReport) -> None:
            nonlocal best
            best = max(best, report.validation_accuracy)
            said = f"loss {report.train_loss:.3f}  validation {report.validation_accuracy:.3f}  best {best:.3f}"
            progress.update(task, completed=report.epoch, said=said)

        yield advance
