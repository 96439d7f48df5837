"""JSON from untrusted files: parsed, and as dataclasses with every value checked against its field's type."""

import json
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from math import isfinite
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from mpad.errors import InputError

Value = TypeVar("Value")
_LARGEST = 1 << 53  # larger integers are not exact as floats, and no valid size
_LONGEST_LIST = 1_000
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


def as_settings(kind: type[Value], record: Any, wrong: Callable[[str], Exception]) -> Value:
    """Turn a JSON object into a dataclass; raise `wrong(reason)` for unknown fields and values of other types."""
    if not isinstance(record, dict):
        raise wrong("expected an object")
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type] # every caller's is a dataclass
    unknown = [name for name in record if name not in known]
    if unknown:
        raise wrong(f"no setting '{unknown[0][:60]}' (known: {', '.join(known)})")
    for name, field in known.items():
        if name not in record and field.default is MISSING:
            raise wrong(f"'{name}' is missing")
        if name in record and not _is_a(record[name], hints[name]):
            raise wrong(f"{name} = {record[name]!r:.60} is not a value that it can have")
    try:
        return kind(**record)
    except (InputError, TypeError, ValueError) as error:
        raise wrong(str(error)) from None


def _is_a(value: Any, hint: Any) -> bool:
    """Return whether a JSON value is of an annotated type."""
    if hint is Any:
        return True
    origin = get_origin(hint)
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if origin in (Union, UnionType):
        return any(_is_a(value, one) for one in get_args(hint))
    if origin in (list, tuple, Sequence):
        inner = get_args(hint)[0]
        return isinstance(value, list) and len(value) <= _LONGEST_LIST and all(_is_a(one, inner) for one in value)
    if hint is int:
        return type(value) is int and abs(value) < _LARGEST
    if hint is float:
        return type(value) in (int, float) and isfinite(value) and abs(value) < _LARGEST
    return hint in (bool, str, type(None)) and type(value) is hint
