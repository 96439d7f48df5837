"""The README's Python runs, and says what it says it says."""

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)


def printed(code: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    return out.getvalue()


def test_there_is_code_with_output_within_the_first_screen():
    assert len(PYTHON) >= 2
    assert README[: README.index(PYTHON[0][1])].count("\n") < 30


def test_the_session_runs():
    """Weights differ in the last digits from machine to machine; the labels printed do not."""
    code, shown = PYTHON[0]
    output = printed(code)
    assert output.splitlines()[0] == shown.splitlines()[0]
    assert output.splitlines()[1].split()[0] == shown.splitlines()[1].split()[0]
    assert "word" in output and "pair of words" in output


def test_the_graph_example_is_exact():
    for code, shown in PYTHON[1:]:
        assert printed(code).strip() == shown.strip()
