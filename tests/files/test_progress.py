import io

import pytest
import rich.console

from mpad.files import progress


@pytest.mark.parametrize(("delay", "terminal", "shown"), [(-1, True, True), (60, True, False), (-1, False, False)])
def test_a_bar_is_shown_to_those_who_wait(monkeypatch, delay, terminal, shown):
    drawn = io.StringIO()
    console = rich.console.Console(file=drawn, force_terminal=terminal, force_jupyter=False, width=100)
    monkeypatch.setattr(rich.console, "Console", lambda stderr: console)
    monkeypatch.setattr(progress, "DELAY", delay)
    with progress.slow_bar(20, "reading") as done:
        done(5)
        done(6)
    assert ("reading" in drawn.getvalue() and "11/20" in drawn.getvalue()) is shown
