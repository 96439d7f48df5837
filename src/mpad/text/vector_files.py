"""The formats of word-vector files, each as a stream of (word, row).

| format          | first line  | then                                                   |
|-----------------|-------------|--------------------------------------------------------|
| word2vec binary | count width | word, a space, width float32 little-endian, a newline  |
| word2vec text   | count width | word and width numbers per line                        |
| fastText .vec   | count width | the same                                               |
| GloVe           | (none)      | the same                                               |
| .npz            |             | `words` and `vectors`, or `words`, `rows` and `scale`  |

Files are streamed through a small buffer: a file of any size takes a few megabytes of memory. `.gz` is read
directly. Numbers are parsed only for wanted words.
"""

import gzip
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mpad.errors import VectorFileError
from mpad.files.archives import LIMITS, TooLarge, open_stream

Row = NDArray[np.float32]
Wanted = Callable[[str], bool]
_BLOCK = 1 << 22
_LONGEST_WORD = 1 << 16
_WIDEST = 1 << 16


def read_rows(path: Path, wanted: Wanted) -> Iterator[tuple[str, Row]]:
    """Yield the wanted words of a vector file in its order, each with its row.

    `wanted` is called once for every word of the file, in order.
    """
    if not path.is_file():
        raise VectorFileError(f"{path}: no such file; expected word vectors (word2vec, GloVe, fastText or .npz)")
    if path.suffix == ".npz":
        yield from _read_npz(path, wanted)
        return
    with open_stream(path) as file:
        try:
            yield from _read_stream(path, file, wanted)
        except EOFError:
            raise VectorFileError(
                f"{path}: the gzip stream ends too early: the file is truncated; fetch it again"
            ) from None
        except (gzip.BadGzipFile, zlib.error, OSError, TooLarge) as error:
            raise VectorFileError(f"{path}: cannot be read: {error}") from None


def _read_stream(path: Path, file: IO[bytes], wanted: Wanted) -> Iterator[tuple[str, Row]]:
    first = file.readline(_LONGEST_WORD)
    fields = first.split()
    if len(fields) == 2 and all(field.isdigit() and len(field) < 19 for field in fields):
        count, width = int(fields[0]), int(fields[1])
        if not 1 <= width <= _WIDEST:
            raise VectorFileError(f"{path}, line 1: the width of the vectors is {width}; expected 1 to {_WIDEST:,}")
        start = file.read(width * 32 + _LONGEST_WORD)
        if count == 0:
            return
        if _looks_textual(start):
            yield from _read_text(path, file, start, 2, wanted, width, count)
        else:
            yield from _read_binary(path, file, start, len(first), wanted, width, count)
    else:
        if len(fields) < 2 or not _is_number(fields[-1]):
            raise VectorFileError(
                f"{path}, line 1: expected 'count width' (word2vec, fastText) or a word and its numbers "
                f"(GloVe), found {first[:60]!r}"
            )
        yield from _read_text(path, file, first, 1, wanted, len(fields) - 1, None)


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _looks_textual(start: bytes) -> bool:
    """Return True for text: binary floats are hardly ever long runs of valid UTF-8 without control characters."""
    head = start[:4096]
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:
            return False
        text = head[: error.start].decode("utf-8")  # the last character was cut in two
    return not any(character < " " and character not in "\t\r\n" for character in text)


def _read_text(
    path: Path, file: IO[bytes], start: bytes, number: int, wanted: Wanted, width: int, count: int | None
) -> Iterator[tuple[str, Row]]:
    read = 0
    longest = _LONGEST_WORD + 64 * width  # bytes
    for line in _split_lines(file, start):
        if len(line) > longest:
            raise VectorFileError(f"{path}, line {number}: longer than {longest:,} bytes: not a word and its numbers")
        fields = line.rstrip().rsplit(b" ", width)  # from the right: some GloVe words hold spaces
        if len(fields) != width + 1:
            raise VectorFileError(
                f"{path}, line {number}: expected a word and {width} numbers, "
                f"found {len(fields) - 1} numbers: the file is truncated or not of this format"
            )
        word = fields[0].decode("utf-8", "replace")
        if wanted(word):
            try:
                with np.errstate(over="ignore"):  # becomes infinite, which the caller reports
                    row = np.array(fields[1:], dtype=np.float32)
            except ValueError as error:
                raise VectorFileError(f"{path}, line {number}: not a number: {error}") from None
            yield word, row
        number += 1
        read += 1
    if count is not None and read < count:
        raise VectorFileError(
            f"{path}, line {number}: the file ends after {read:,} of the {count:,} words that line 1 "
            "announces: it is truncated; fetch it again"
        )


def _split_lines(file: IO[bytes], start: bytes) -> Iterator[bytes]:
    rest = start
    while True:
        *complete, rest = rest.split(b"\n")
        yield from complete
        block = file.read(_BLOCK)
        if not block:
            break
        rest += block
        if len(rest) > 64 * _BLOCK:  # no valid line is that long; the caller reports it
            break
    if rest.strip():
        yield rest


def _read_binary(
    path: Path, file: IO[bytes], start: bytes, offset: int, wanted: Wanted, width: int, count: int
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
                f"{path}, byte {offset + position:,}: no space ends the word that should be here: "
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


def _read_npz(path: Path, wanted: Wanted) -> Iterator[tuple[str, Row]]:
    try:
        _check_npz(path)
        with np.load(path, allow_pickle=False) as file:
            words = file["words"]
            rows = file["vectors"] if "vectors" in file else file["rows"]
            scale = np.asarray(file["scale"]) if "scale" in file else np.ones(len(rows))
    except (*_BAD_NPZ, RuntimeError, NotImplementedError, MemoryError) as error:
        raise VectorFileError(
            f"{path}: expected an .npz file with the arrays 'words' and 'vectors' "
            f"(or 'words', 'rows' and 'scale'): {error}"
        ) from None
    numbers = rows.dtype.kind in "fiu" and scale.dtype.kind in "fiu" and words.dtype.kind == "U"
    if rows.ndim != 2 or words.ndim != 1 or scale.ndim != 1 or not len(words) == len(rows) == len(scale) or not numbers:
        raise VectorFileError(
            f"{path}: expected words, and one row of numbers a word; found words of type {words.dtype} and shape "
            f"{words.shape}, rows of type {rows.dtype} and shape {rows.shape}, scales of shape {scale.shape}"
        )
    for number, word in enumerate(words.tolist()):
        if wanted(word):
            yield word, rows[number].astype(np.float32) * np.float32(scale[number])


_BAD_NPZ = (
    KeyError, ValueError, EOFError, OSError, TypeError, zipfile.BadZipFile, zlib.error,
    SyntaxError, TokenError, RecursionError,  # headers are parsed as Python literals
)  # fmt: skip


def _check_npz(path: Path) -> None:
    """Reject arrays that claim more bytes than the file holds, before memory is allocated."""
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.file_size > max(LIMITS.ratio * info.compress_size, 64 << 20) or info.file_size > LIMITS.total:
                raise ValueError(f"'{info.filename}' unpacks to {info.file_size:,} bytes, more than is taken")
            with archive.open(info) as opened:
                version = np.lib.format.read_magic(opened)
                read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
                if version not in read:
                    raise ValueError(f"'{info.filename}' is an array of version {version}; expected 1.0 or 2.0")
                header: Any = read[version](opened)
                shape, _, kind = header
                needed = int(np.prod(shape, dtype=object)) * kind.itemsize
            if min(shape, default=0) < 0 or needed > info.file_size:
                raise ValueError(f"'{info.filename}' says shape {shape}, but there are {info.file_size:,} bytes of it")
