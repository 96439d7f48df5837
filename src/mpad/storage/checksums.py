"""SHA256SUMS: the checksums of a folder's files, in the format of `sha256sum --check`."""

import hashlib
import re
from pathlib import Path

from mpad.errors import DamagedModel, MissingModelFile

SUMS = "SHA256SUMS"
_LARGEST = 64 << 20  # bytes of a file that is read into memory


def read_sums(folder: Path) -> dict[str, str] | None:
    """Return the checksum of each file by its name; None if the folder has no checksums."""
    path = folder / SUMS
    if not path.exists():
        return None
    lines = read_small(path).decode("utf-8", "replace").splitlines()
    result = [re.fullmatch(r"([0-9a-f]{64})  ([\w.-]+)", line) for line in lines]
    if None in result or not result:
        raise DamagedModel(f"{path}: expected a checksum and a name per line")
    return {match[2]: match[1] for match in result if match is not None}


def read_small(file: Path) -> bytes:
    """Read a small regular file; pipes and devices, which may never end, are rejected."""
    if not file.is_file():
        raise MissingModelFile(f"{file}: no such file: {file.parent} is not a model, or is incomplete")
    if file.stat().st_size > _LARGEST:
        raise DamagedModel(f"{file}: has {file.stat().st_size:,} bytes, more than any that mpad writes")
    return file.read_bytes()


def digest(file: Path) -> str:
    """Return the SHA-256 checksum of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
