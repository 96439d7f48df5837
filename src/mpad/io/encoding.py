"""Bytes → text → lines."""

import codecs

from mpad.errors import DataFileError

_MARKS = (  # the longer first: UTF-32's begins with UTF-16's
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decode(source: str, data: bytes) -> str:
    """Read bytes as UTF-8, or as their byte-order mark says; or say in which line of the source they are not."""
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    try:
        content = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        cure = "iconv -f LATIN1 -t UTF-8" if encoding.startswith("utf-8") else "it seems to be cut off"
        named = encoding.removesuffix("-sig").upper()
        raise DataFileError(
            f"{source}, line {line}: byte 0x{data[error.start]:02x} is not {named}; convert the file ({cure})"
        ) from None
    head = data[:4096]
    if encoding == "utf-8" and 10 * head.count(0) > len(head) and len(head) > 1:  # every other byte is zero
        order = "LE" if head[1::2].count(0) > head[0::2].count(0) else "BE"
        raise DataFileError(
            f"{source}: every other byte is zero, as in UTF-16 without a byte-order mark; convert the file "
            f"(iconv -f UTF-16{order} -t UTF-8)"
        )
    return content


def split_lines(content: str) -> list[str]:
    """One document a line, empty lines included: as many answers as lines."""
    lines = content.split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
