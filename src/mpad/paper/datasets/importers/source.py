"""The files of an original distribution: in a folder, a tar or zip archive, or one file alone.

Archives are read in memory, never unpacked to disk, within the limits of `mpad.files.archives`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mpad.errors import DataFileError
from mpad.files.archives import archive_files

_MARK = b"\xef\xbb\xbf"
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

    def wrong(self, line: int, expected: str, result: str) -> DataFileError:
        """The error that says what stands in a line instead of what was expected."""
        return DataFileError(f"{self}, line {line}: expected {expected}, found {result[:80]!r}")


def read_files(source: Path, wanted: Wanted) -> Iterator[File]:
    """Give the files of a folder or archive that are wanted, in the order of their names where that is known."""
    if not source.exists():
        raise DataFileError(f"{source}: no such file or folder")
    if source.is_dir():
        for file in sorted(file for file in source.rglob("*") if file.is_file()):
            inside = PurePosixPath(file.relative_to(source).as_posix())
            if _visible(inside) and wanted(inside):
                yield File(source, inside, file.read_bytes())
        return
    packed = archive_files(source, lambda inside: _visible(inside) and wanted(inside))
    if packed is not None:
        for inside, data in packed:
            yield File(source, inside, data)
    elif wanted(PurePosixPath(source.name)):
        yield File(source.parent, PurePosixPath(source.name), source.read_bytes())


def _visible(path: PurePosixPath) -> bool:
    """Not one of the files that file systems leave beside the real ones."""
    return not any(part.startswith(".") or part == "__MACOSX" for part in path.parts)


def read_named(source: Path, names: dict[str, str]) -> dict[str, File]:
    """Give the file for each key, by its name, case ignored; all must be there."""
    by_name = {name.lower(): key for key, name in names.items()}
    result: dict[str, File] = {}
    for file in read_files(source, lambda path: path.name.lower() in by_name):
        result.setdefault(by_name[file.path.name.lower()], file)
    missing = [name for key, name in names.items() if key not in result]
    if missing:
        raise DataFileError(
            f"{source}: expected {', '.join(names.values())} inside; there is no {', no '.join(missing)}"
        )
    return result
