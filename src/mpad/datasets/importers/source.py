"""The files of an original distribution: in a folder, a tar or zip archive, or one file alone.

Archives are read in memory, never unpacked to disk.
"""

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mpad.errors import DataFileError

_MARK = b"\xef\xbb\xbf"
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError)
Wanted = Callable[[PurePosixPath], bool]


@dataclass(frozen=True)
class File:
    """One file of a distribution."""

    source: Path  # the folder or archive
    path: PurePosixPath  # inside it
    data: bytes

    def __str__(self) -> str:
        return f"{self.source}: {self.path}"

    def lines(self, encoding: str = "utf-8", errors: str = "strict") -> list[str]:
        """The file's lines."""
        return self.text(encoding, errors).replace("\r\n", "\n").removesuffix("\n").split("\n")

    def text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The file as text, without a byte-order mark."""
        try:
            return self.data.removeprefix(_MARK).decode(encoding, errors)
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            raise DataFileError(f"{self}, line {line}: byte 0x{self.data[error.start]:02x} is not {encoding}") from None

    def wrong(self, line: int, expected: str, found: str) -> DataFileError:
        """The error that says what stands in a line instead of what was expected."""
        return DataFileError(f"{self}, line {line}: expected {expected}, found {found[:80]!r}")


def read_files(source: Path, wanted: Wanted) -> Iterator[File]:
    """Give the files of a folder or archive that are wanted, in the order of their names where that is known."""
    if not source.exists():
        raise DataFileError(f"{source}: no such file or folder")
    if source.is_dir():
        for file in sorted(file for file in source.rglob("*") if file.is_file()):
            inside = PurePosixPath(file.relative_to(source).as_posix())
            if _visible(inside) and wanted(inside):
                yield File(source, inside, file.read_bytes())
    elif zipfile.is_zipfile(source):
        yield from _undamaged(source, _zip(source, wanted))
    elif tarfile.is_tarfile(source):
        yield from _undamaged(source, _tar(source, wanted))
    elif wanted(PurePosixPath(source.name)):
        yield File(source.parent, PurePosixPath(source.name), source.read_bytes())


def _undamaged(source: Path, files: Iterator[File]) -> Iterator[File]:
    try:
        yield from files
    except _DAMAGED as error:
        raise DataFileError(f"{source}: cannot be unpacked: {error}; the file is damaged: fetch it again") from None


def _zip(source: Path, wanted: Wanted) -> Iterator[File]:
    with zipfile.ZipFile(source) as archive:
        for name in sorted(archive.namelist()):
            if not name.endswith("/") and _visible(PurePosixPath(name)) and wanted(PurePosixPath(name)):
                yield File(source, PurePosixPath(name), archive.read(name))


def _tar(source: Path, wanted: Wanted) -> Iterator[File]:
    """In the archive's own order: a compressed tar can only be read through."""
    with tarfile.open(source) as archive:
        for member in archive:
            inside = PurePosixPath(member.name)
            if member.isfile() and _visible(inside) and wanted(inside):
                opened = archive.extractfile(member)
                if opened is not None:
                    yield File(source, inside, opened.read())
        # tarfile takes a header that it cannot read for the end; behind the true end there is nothing but zeros.
        assert archive.fileobj is not None
        archive.fileobj.seek(archive.offset)
        while block := archive.fileobj.read(1 << 20):
            if block.strip(b"\0"):
                raise tarfile.ReadError(f"no file begins at byte {archive.offset:,}, where one should")


def _visible(path: PurePosixPath) -> bool:
    """Not one of the files that file systems leave beside the real ones."""
    return not any(part.startswith(".") or part == "__MACOSX" for part in path.parts)


def read_named(source: Path, names: dict[str, str]) -> dict[str, File]:
    """Give the file for each key, by its name, case ignored; all must be there."""
    by_name = {name.lower(): key for key, name in names.items()}
    found: dict[str, File] = {}
    for file in read_files(source, lambda path: path.name.lower() in by_name):
        found.setdefault(by_name[file.path.name.lower()], file)
    missing = [name for key, name in names.items() if key not in found]
    if missing:
        raise DataFileError(
            f"{source}: expected {', '.join(names.values())} inside; there is no {', no '.join(missing)}"
        )
    return found
