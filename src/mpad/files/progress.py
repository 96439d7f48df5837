"""A progress bar that appears only if the work takes long."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

DELAY = 2.0  # seconds before the bar is drawn


@contextmanager
def slow_bar(total: int, label: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that counts finished units; after two seconds a terminal or notebook shows a bar."""
    from rich.console import Console  # here: most work needs no bar
    from rich.errors import LiveError
    from rich.progress import MofNCompleteColumn, Progress

    console, begun, done = Console(stderr=True), time.monotonic(), 0
    progress = Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=console, transient=True)
    task = progress.add_task(label, total=total)
    watched = console.is_terminal or console.is_jupyter
    with ExitStack() as shown:

        def advance(more: int) -> None:
            nonlocal done, watched
            done += more
            progress.update(task, completed=done)
            if watched and not progress.live.is_started and time.monotonic() - begun > DELAY and done < total:
                try:
                    shown.enter_context(progress)
                except LiveError:  # another bar is active, and this version of rich draws one at a time
                    watched = False

        yield advance
