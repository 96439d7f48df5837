"""Progress bars on standard error, shown on a terminal only."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

from mpad.training.progress import bar_columns

Item = TypeVar("Item")


@contextmanager
def progress_bar(title: str, total: int | None) -> Iterator[Callable[..., None]]:
    """Yield a function that advances a bar and shows a message; without a total there is no bar."""
    console = Console(stderr=True)
    shown = console.is_terminal and total is not None
    with Progress(*bar_columns(title), console=console, transient=True, disable=not shown) as progress:
        task = progress.add_task(title, total=total, said="")

        def advance(said: str = "", by: int = 1) -> None:
            progress.update(task, advance=by, said=said)

        yield advance


def track(items: Iterable[Item], title: str, total: int | None) -> Iterator[Item]:
    """Yield items with a progress bar."""
    with progress_bar(title, total) as advance:
        for item in items:
            yield item
            advance()
