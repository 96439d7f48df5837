"""JSON from untrusted files."""

import json
from collections.abc import Callable
from typing import Any

_DEEPEST = 200  # nested objects and lists; Python's parser fails somewhat later


def parse_json(text: str, wrong: Callable[[str], Exception]) -> Any:
    """Parse one JSON value; raise `wrong(reason)` if Python's parser fails for any reason."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if "\n" in text else ""
        raise wrong(f"{error.msg} ({line}column {error.colno})") from None
    except RecursionError:
        raise wrong(f"lists and objects inside one another, thousands deep; at most {_DEEPEST} make sense") from None
    except ValueError as error:  # a number of thousands of digits
        raise wrong(str(error).partition(";")[0]) from None


def read_json(data: bytes, wrong: Callable[[str], Exception]) -> Any:
    """Parse the bytes of a JSON file, which is UTF-8."""
    try:
        return parse_json(data.decode("utf-8-sig"), wrong)
    except UnicodeDecodeError as error:
        raise wrong(f"byte 0x{data[error.start]:02x} at {error.start:,} is not UTF-8") from None
