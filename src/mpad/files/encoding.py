"""Decode bytes into text and lines."""

import codecs
import io
from collections.abc import Iterator
from typing import IO, cast

from mpad.errors import DataFileError

_MARKS = (  # longer ones first: UTF-32's mark begins with UTF-16's
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD = 4096  # bytes inspected to detect the encoding


def decode(source: str, data: bytes) -> str:
    """Decode bytes as UTF-8, or by their byte-order mark; errors name the line of the source."""
    encoding = _encoding(source, data[:_HEAD])
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise _undecodable(source, 0, error, encoding) from None


def decoded_lines(source: str, stream: IO[bytes], newline: str) -> Iterator[str]:
    """Decode a stream line by line, so that memory does not grow with the source; `newline` as in `open`."""
    buffered = io.BufferedReader(cast(io.RawIOBase, stream))
    encoding = _encoding(source, buffered.peek(_HEAD)[:_HEAD])
    line = 0
    with io.TextIOWrapper(buffered, encoding, newline=newline) as lines:
        try:
            for line, text in enumerate(lines, start=1):  # noqa: B007, used in the error
                yield text
        except UnicodeDecodeError as error:
            raise _undecodable(source, line, error, encoding) from None


def _encoding(source: str, head: bytes) -> str:
    encoding = next((name for mark, name in _MARKS if head.startswith(mark)), "utf-8")
    if encoding == "utf-8" and 10 * head.count(0) > len(head) and len(head) > 1:  # every other byte is zero
        order = "LE" if head[1::2].count(0) > head[0::2].count(0) else "BE"
        raise DataFileError(
            f"{source}: every other byte is zero, as in UTF-16 without a byte-order mark; convert the file "
            f"(iconv -f UTF-16{order} -t UTF-8)"
        )
    return encoding


def _undecodable(source: str, before: int, error: UnicodeDecodeError, encoding: str) -> DataFileError:
    """Return the error for undecodable bytes; `before` is the number of lines before them."""
    line = before + error.object.count(b"\n", 0, error.start) + 1
    cure = "iconv -f LATIN1 -t UTF-8" if encoding.startswith("utf-8") else "it seems to be cut off"
    named = encoding.removesuffix("-sig").upper()
    return DataFileError(
        f"{source}, line {line}: byte 0x{error.object[error.start]:02x} is not {named}; convert the file ({cure})"
    )


def split_lines(content: str) -> list[str]:
    """Split text into lines, keeping empty ones: each line is a document."""
    lines = content.split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
