import pytest

from mpad.text.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain — schön 电影", "plain — schön 电影"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[2J\x07", r"\x1b[2J\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("a\rb", r"a\x0db"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_would_steer_a_terminal_is_written_out(text, shown):
    assert printable(text) == shown
