r"""Text of strangers on a terminal: what would steer it is shown, not obeyed."""

import re

# C0 and C1 control characters but tab and newline, DEL, and the marks that turn the direction of writing round.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""The same text with control characters written out, as in \x1b[2J."""
    return _STEERING.sub(lambda match: _written(match[0]), text)


def _written(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
