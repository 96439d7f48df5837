"""SHA256SUMS: a checksum of each file of a folder, as `sha256sum --check` reads it."""

import hashlib
import re
from pathlib import Path

from mpad.errors import DamagedModel, MissingModelFile

SUMS = "SHA256SUMS"
_LARGEST = 64 << 20  # bytes of a file that is read at one go


def read_sums(folder: Path) -> dict[str, str] | None:
    """Checksum of each file, by its name; None where the folder has none."""
    path = folder / SUMS
    if not path.exists():
        return None
    lines = read_small(path).decode("utf-8", "replace").splitlines()
    result = [re.fullmatch(r"([0-9a-f]{64})  ([\w.-]+)", line) for line in lines]
    if None in result or not result:
        raise DamagedModel(f"{path}: expected a checksum and a name a line")
    return {match[2]: match[1] for match in result if match is not None}


def read_small(file: Path) -> bytes:
    """Read a small file; not a pipe or a device, which may never end."""
    if not file.is_file():
        raise MissingModelFile(f"{file}: no such file: {file.parent} is not a model, or not a whole one")
    if file.stat().st_size > _LARGEST:
        raise DamagedModel(f"{file}: has {file.stat().st_size:,} bytes, more than any that mpad writes")
    return file.read_bytes()


def digest(file: Path) -> str:
    """Checksum of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
