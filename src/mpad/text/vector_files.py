"""The formats of word-vector files, each as a stream of (word, row).

| format          | first line  | then                                                   |
|-----------------|-------------|--------------------------------------------------------|
| word2vec binary | count width | word, a space, width float32 little-endian, a newline  |
| word2vec text   | count width | word and width numbers a line                          |
| fastText .vec   | count width | the same                                               |
| GloVe           | (none)      | the same                                               |
| .npz            |             | `words` and `vectors`, or `words`, `rows` and `scale`  |

Files are streamed through a small buffer, never loaded or mapped whole: a file of any size takes a few
megabytes. `.gz` is read as it is. Numbers are only parsed for the words that somebody wants.
"""

import gzip
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from mpad.errors import VectorFileError

Row = NDArray[np.float32]
Wanted = Callable[[str], bool]
_BLOCK = 1 << 22
_LONGEST_WORD = 1 << 16


def read_rows(path: Path, wanted: Wanted) -> Iterator[tuple[str, Row]]:
    """Give the wanted words of a vector file in its order, each with its row.

    `wanted` is asked once for every word of the file, in order.
    """
    if not path.is_file():
        raise VectorFileError(f"{path}: no such file; expected word vectors (word2vec, GloVe, fastText or .npz)")
    if path.suffix == ".npz":
        yield from _npz(path, wanted)
        return
    opened = gzip.open(path) if _is_gzip(path) else path.open("rb")
    with opened as file:
        try:
            yield from _stream(path, cast(BinaryIO, file), wanted)
        except EOFError:
            raise VectorFileError(
                f"{path}: the gzip stream ends too early: the file is truncated; fetch it again"
            ) from None
        except (gzip.BadGzipFile, OSError) as error:
            raise VectorFileError(f"{path}: cannot be read: {error}") from None


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _stream(path: Path, file: BinaryIO, wanted: Wanted) -> Iterator[tuple[str, Row]]:
    first = file.readline(_LONGEST_WORD)
    fields = first.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        count, width = int(fields[0]), int(fields[1])
        if width == 0:
            raise VectorFileError(f"{path}, line 1: the width of the vectors is 0")
        start = file.read(width * 32 + _LONGEST_WORD)
        if count == 0:
            return
        if _looks_textual(start):
            yield from _text(path, file, start, 2, wanted, width, count)
        else:
            yield from _binary(path, file, start, len(first), wanted, width, count)
    else:
        if len(fields) < 2 or not _is_number(fields[-1]):
            raise VectorFileError(
                f"{path}, line 1: expected 'count width' (word2vec, fastText) or a word and its numbers "
                f"(GloVe), found {first[:60]!r}"
            )
        yield from _text(path, file, first, 1, wanted, len(fields) - 1, None)


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _looks_textual(start: bytes) -> bool:
    """Whether this is text: floats in binary are hardly ever valid UTF-8 free of control characters for long."""
    head = start[:4096]
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:
            return False
        text = head[: error.start].decode("utf-8")  # the last character was cut in two
    return not any(character < " " and character not in "\t\r\n" for character in text)


def _text(
    path: Path, file: BinaryIO, start: bytes, number: int, wanted: Wanted, width: int, count: int | None
) -> Iterator[tuple[str, Row]]:
    read = 0
    for line in _lines(file, start):
        fields = line.rstrip().rsplit(b" ", width)  # from the right: some GloVe words hold spaces
        if len(fields) != width + 1:
            raise VectorFileError(
                f"{path}, line {number}: expected a word and {width} numbers, "
                f"found {len(fields) - 1} numbers: the file is truncated or not of this format"
            )
        word = fields[0].decode("utf-8", "replace")
        if wanted(word):
            try:
                yield word, np.array(fields[1:], dtype=np.float32)
            except ValueError as error:
                raise VectorFileError(f"{path}, line {number}: not a number: {error}") from None
        number += 1
        read += 1
    if count is not None and read < count:
        raise VectorFileError(
            f"{path}, line {number}: the file ends after {read:,} of the {count:,} words that line 1 "
            "announces: it is truncated; fetch it again"
        )


def _lines(file: BinaryIO, start: bytes) -> Iterator[bytes]:
    rest = start
    while True:
        *whole, rest = rest.split(b"\n")
        yield from whole
        block = file.read(_BLOCK)
        if not block:
            break
        rest += block
    if rest.strip():
        yield rest


def _binary(
    path: Path, file: BinaryIO, start: bytes, offset: int, wanted: Wanted, width: int, count: int
) -> Iterator[tuple[str, Row]]:
    row_bytes = 4 * width
    buffer, position = start, 0
    for read in range(count):
        if len(buffer) - position < row_bytes + _LONGEST_WORD:
            offset += position
            buffer, position = buffer[position:] + file.read(max(_BLOCK, 2 * row_bytes)), 0
        space = buffer.find(b" ", position, position + _LONGEST_WORD)
        if space < 0 and len(buffer) - position >= _LONGEST_WORD:
            raise VectorFileError(
                f"{path}, byte {offset + position:,}: no space ends the word that should stand here: "
                "the file is damaged, or not word2vec binary of this width"
            )
        end = space + 1 + row_bytes
        if space < 0 or end > len(buffer):
            raise VectorFileError(
                f"{path}, byte {offset + len(buffer):,}: the file ends after {read:,} of the {count:,} words "
                "that its first line announces: it is truncated; fetch it again"
            )
        word = buffer[position:space].lstrip(b"\n").decode("utf-8", "replace")
        if wanted(word):
            yield word, np.frombuffer(buffer, "<f4", width, space + 1).astype(np.float32)
        position = end


def _npz(path: Path, wanted: Wanted) -> Iterator[tuple[str, Row]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            words = file["words"]
            rows = file["vectors"] if "vectors" in file else file["rows"]
            scale = np.asarray(file["scale"]) if "scale" in file else np.ones(len(rows))
    except (KeyError, ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise VectorFileError(
            f"{path}: expected an .npz file with the arrays 'words' and 'vectors' "
            f"(or 'words', 'rows' and 'scale'): {error}"
        ) from None
    if rows.ndim != 2 or not len(words) == len(rows) == len(scale):
        raise VectorFileError(
            f"{path}: expected one row a word, found {len(words):,} words, rows of shape {rows.shape} "
            f"and {len(scale):,} scales"
        )
    for number, word in enumerate(words.tolist()):
        if wanted(word):
            yield word, rows[number].astype(np.float32) * np.float32(scale[number])
