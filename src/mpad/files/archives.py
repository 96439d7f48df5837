"""Compressed files and archives, read with limits, so that a few kilobytes cannot become gigabytes of memory.

| limit      | meaning                                                                                    |
|------------|--------------------------------------------------------------------------------------------|
| `total`    | unpacked bytes in memory at once                                                           |
| `ratio`    | unpacked bytes per packed byte, beyond the first 64 MiB; text packs 3 to 20 times          |

Larger files can be unpacked by hand: files that are not packed have no limit.
"""

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from mpad.errors import DataFileError

PACKED = frozenset({".gz", ".xz", ".zip"})
_BLOCK = 1 << 20
_FREE = 64 << 20  # unpacked bytes before the ratio applies
_DAMAGED = (
    OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile,
    NotImplementedError,  # a zip method that Python does not know
    RuntimeError,  # an encrypted zip
    ValueError, IndexError, OverflowError,  # headers that make no sense
)  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """Limits on the unpacked size of a file."""

    total: int = 2 << 30  # bytes
    ratio: int = 200

    def most(self, packed: int) -> int:
        """Return the largest unpacked size of a file of `packed` bytes."""
        return min(self.total, _limit(packed, self.ratio))


LIMITS = Limits()
Wanted = Callable[[PurePosixPath], bool]


class TooLarge(DataFileError):
    """A packed file that unpacks to more than the limits allow."""


class _LimitedStream(RawIOBase):
    """A stream of unpacked bytes that raises at its limit and never reads beyond it."""

    def __init__(self, source: IO[bytes], most: int, name: str) -> None:
        self._source, self._most, self._name = source, most, name

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        """Return the position in unpacked bytes."""
        return self._source.tell()

    def seek(self, place: int, whence: int = 0) -> int:
        """Move to a position, relative to the beginning or to the current one."""
        self._check(place if whence == 0 else self.tell() + place)
        return self._source.seek(place, whence)

    def read(self, size: int | None = -1) -> bytes:
        """Read `size` bytes, or all remaining ones."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_BLOCK), b""))
        block = self._source.read(min(size, self._most + 1))
        self._check(self.tell())
        return block

    def readinto(self, buffer: Any) -> int:
        """Read at most as many bytes as the buffer holds."""
        block = self.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)

    def readline(self, size: int | None = -1) -> bytes:
        """Read a line of at most `size` bytes."""
        line = self._source.readline(min(self._most + 1, size if size is not None and size >= 0 else self._most + 1))
        self._check(self.tell())
        return line

    def _check(self, place: int) -> None:
        if place > self._most:
            raise _too_large(self._name, self._most)

    def close(self) -> None:
        """Close the stream and the packed file."""
        self._source.close()
        super().close()


@contextmanager
def translate_errors(source: Path) -> Iterator[None]:
    """Turn all errors of damaged archives into one that names the file."""
    try:
        yield
    except DataFileError:
        raise
    except _DAMAGED as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, RuntimeError) and "encrypted" in reason:
            reason = "it is encrypted; unpack it with its password and give the unpacked file"
        raise DataFileError(f"{source}: cannot be unpacked: {reason}") from None
    except MemoryError:
        raise TooLarge(f"{source}: unpacks to more than this machine's memory; give a smaller file") from None


def read_unpacked(path: Path, limits: Limits = LIMITS) -> bytes:
    """Read a file into memory, unpacking `.gz`, `.xz` and `.zip` (which must hold one file)."""
    with translate_errors(path):
        if not path.is_file():
            raise DataFileError(f"{path}: not a regular file; write what it gives to a file first")
        size = path.stat().st_size
        match path.suffix.lower():
            case ".gz" | ".xz" as packing:
                with gzip.open(path) if packing == ".gz" else lzma.open(path) as opened:
                    return _LimitedStream(cast(IO[bytes], opened), limits.most(size), str(path)).read()
            case ".zip":
                with zipfile.ZipFile(path) as archive:
                    return _read_member(path, archive, archive.getinfo(only_member(path, archive)), limits)
            case _:
                return path.read_bytes()


def can_stream(path: Path) -> bool:
    """Return whether a file can be read block by block."""
    return path.suffix.lower() not in PACKED - {".gz"}


def open_stream(path: Path, limits: Limits = LIMITS) -> IO[bytes]:
    """Open a file, unpacking gzip, to read it block by block; only the ratio is limited."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if not packed:
        return path.open("rb")
    source = cast(IO[bytes], gzip.open(path))
    return cast(IO[bytes], _LimitedStream(source, _limit(path.stat().st_size, limits.ratio), str(path)))


def only_member(path: Path, archive: zipfile.ZipFile) -> str:
    """Return the name of the one file in a zip archive."""
    members = [name for name in archive.namelist() if not name.endswith("/") and "__MACOSX" not in name]
    if len(members) != 1:
        raise DataFileError(f"{path}: expected one file inside, found {len(members)}; unpack it and name the file")
    return members[0]


def _read_member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, limits: Limits) -> bytes:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others have no limit
        raise DataFileError(f"{path}: its compression method is none that is read here; unpack it, or pack it as usual")
    with archive.open(info) as opened:
        return _LimitedStream(opened, limits.most(info.compress_size), f"{path}: {info.filename}").read()


def archive_files(
    source: Path, wanted: Wanted, limits: Limits = LIMITS
) -> Iterator[tuple[PurePosixPath, bytes]] | None:
    """Yield the wanted files of a zip or tar archive, read in memory; None if the file is no archive."""
    with translate_errors(source):
        if zipfile.is_zipfile(source):
            return _zip_files(source, wanted, limits)
        try:
            _open_tar(source, limits).close()
        except tarfile.ReadError:
            return None
        return _tar_files(source, wanted, limits)


_PACKERS: dict[bytes, Callable[[Path], Any]] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ": lzma.open, b"BZh": bz2.open}


def _open_tar(source: Path, limits: Limits) -> tarfile.TarFile:
    """Open a tar archive, packed or not; its headers count towards the limits too."""
    with source.open("rb") as file:
        head = file.read(8)
    opened = next((unpack(source) for magic, unpack in _PACKERS.items() if head.startswith(magic)), None)
    if opened is None:
        return tarfile.open(source, "r:")
    most = _limit(source.stat().st_size, limits.ratio)
    return tarfile.open(fileobj=_LimitedStream(opened, most, str(source)), mode="r:")


def _zip_files(source: Path, wanted: Wanted, limits: Limits) -> Iterator[tuple[PurePosixPath, bytes]]:
    with translate_errors(source), zipfile.ZipFile(source) as archive:
        for info in sorted(archive.infolist(), key=lambda one: one.filename):
            inside = PurePosixPath(info.filename)
            if not info.is_dir() and wanted(inside):
                data = _read_member(source, archive, info, limits)
                limits = Limits(limits.total - len(data), limits.ratio)
                yield inside, data


def _tar_files(source: Path, wanted: Wanted, limits: Limits) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield files in the archive's order: a compressed tar can only be read sequentially."""
    with translate_errors(source), _open_tar(source, limits) as archive:
        held = 0
        for member in archive:
            inside = PurePosixPath(member.name)
            if not member.isfile() or not wanted(inside):
                continue
            held += member.size
            if held > limits.total:
                raise _too_large(str(source), limits.total)
            opened = archive.extractfile(member)
            if opened is not None:
                yield inside, opened.read()
        # tarfile treats an unreadable header as the end of the archive; the true end is followed only by zeros.
        assert archive.fileobj is not None
        archive.fileobj.seek(archive.offset)
        while block := archive.fileobj.read(_BLOCK):
            if block.strip(b"\0"):
                raise tarfile.ReadError(f"no file begins at byte {archive.offset:,}, where one should")


def _limit(packed: int, ratio: int) -> int:
    return max(_FREE, ratio * max(packed, 1))


def _too_large(name: str, most: int) -> TooLarge:
    return TooLarge(
        f"{name}: unpacks to more than {most:,} bytes, which is too much for a file of its size; "
        "if it is meant to be so large, unpack it and give what it holds"
    )
