"""Inputs made worse at random: bytes, and values of JSON."""

import random
from typing import Any

_TOKENS = [
    b"\0", b"\xff", b"\n", b"\r\n", b",", b";", b'"', b"'", b"\\", b"[", b"{", b"[" * 2000, b'{"a":' * 500,
    b"1" * 5000, b"-1", b"1e999", b"NaN", b"null", b"true", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80",
    b"PK\x03\x04", b"\x1f\x8b", b"\x1b[2J", b"999999999999999999999", b"0x7fffffff", b" " * 100,
    b"\xf0\x9f\x98\x80", b"\xe2\x80\xae",
]  # fmt: skip


def bytes_of(seed: bytes, other: bytes, generator: random.Random) -> bytes:
    """A few changes to a seed: flips, cuts, repeats, tokens, pieces of another."""
    data = bytearray(seed)
    for _ in range(generator.choice((1, 1, 2, 4, 8))):
        place = generator.randrange(len(data) + 1)
        match generator.randrange(7):
            case 0 if data:
                data[place % len(data)] ^= 1 << generator.randrange(8)
            case 1 if data:
                data[place % len(data)] = generator.randrange(256)
            case 2:
                del data[place : place + generator.choice((1, 2, 8, 64))]
            case 3:
                data[place:place] = generator.choice(_TOKENS)
            case 4:
                piece = generator.randrange(len(other) + 1)
                data[place:place] = other[piece : piece + generator.randrange(40)]
            case 5:
                data[place:place] = data[place : place + generator.randrange(40)] * generator.choice((1, 2, 50))
            case _:
                data[place:place] = generator.randbytes(generator.randrange(8))
    return bytes(data)


_ODD: list[Any] = [
    None, True, False, -1, 0, 1, 2, 3, 2.5, -0.5, 1e308, 10**9, 2**31, 2**63, 10**30, "", "x", "kim", "unicode",
    "nan", "builtins:eval", "os:system", "subprocess:getoutput", "mpad", "cnn", "clique", "path", "gru", "identity",
    [], {}, [1], [[[]]], {"a": 1}, ["a", "b"], "\0", "\ud800", "../../etc/passwd", "a" * 10_000,
]  # fmt: skip


def json_of(value: Any, generator: random.Random) -> Any:
    """One value somewhere in a JSON value is another; or is gone, or there twice."""
    if isinstance(value, dict) and value and generator.random() < 0.9:
        key = generator.choice(list(value))
        kind = generator.randrange(12)
        if kind == 0:
            return {name: inner for name, inner in value.items() if name != key}
        if kind == 1:
            return {**value, generator.choice(("extra", "", "__class__", key + "_")): generator.choice(_ODD)}
        return {**value, key: json_of(value[key], generator)}
    if isinstance(value, list) and value and generator.random() < 0.8:
        place = generator.randrange(len(value))
        return generator.choice(
            (
                [*value[:place], *value[place + 1 :]],
                [*value, value[place]],
                [*value[:place], json_of(value[place], generator), *value[place + 1 :]],
            )
        )
    if type(value) is int and generator.random() < 0.5:
        return value + generator.choice((-1, 1, 16, -16, value))
    return generator.choice(_ODD)
