"""The cache folder, for data that can be recomputed, and rows of numbers in it that are slow to compute."""

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from mpad.errors import StoreError
from mpad.files.atomic import write_file

States = NDArray[np.float16]
MOST_BYTES = 8 << 30


def cache_folder() -> Path:
    """Return ~/.cache/mpad, or $XDG_CACHE_HOME/mpad, readable only by its owner."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mpad"
    with suppress(OSError):  # it may not exist, or belong to another user
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
    return folder


def make_private(folder: Path) -> None:
    """Create a folder, and the cache around it, readable only by its owner: it holds words of documents."""
    cache = cache_folder()
    if folder.is_relative_to(cache):
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


class RowCache:
    """Arrays of float16, (any number, width), by keys of 32 letters.

    Each `put` writes a safetensors file with an array per key. When the files exceed `most` bytes together, the least
    recently used ones are removed.
    """

    def __init__(self, folder: Path, width: int, most: int = MOST_BYTES) -> None:
        self.folder, self._width, self._most = folder, width, most
        self._files: dict[Path, Any] = {}  # mapped into memory
        self._places: dict[str, Path] = {}  # the file of each key
        self._lock = Lock()

    def get(self, keys: Sequence[str]) -> list[States | None]:
        """Return the rows of each key; None if they are not cached."""
        with self._lock:
            self._refresh()
            places = [self._places.get(key) for key in keys]
            result = [None if at is None else self._read(at, key) for at, key in zip(places, keys, strict=True)]
        for path in set(places) - {None}:
            with suppress(OSError):  # marks it as recently used
                os.utime(path)  # type: ignore[arg-type]
        return result

    def put(self, keys: Sequence[str], arrays: Sequence[NDArray[np.floating]]) -> None:
        """Store the rows of each key, if the folder can be written."""
        rows = {key: array.astype(np.float16, order="C") for key, array in zip(keys, arrays, strict=True)}
        with suppress(StoreError, OSError):
            make_private(self.folder)
            write_file(self.folder / f"{token_hex(8)}.safetensors", save(rows), private=True)
            self._remove_oldest()

    def _read(self, path: Path, key: str) -> States | None:
        rows: States = self._files[path].get_tensor(key)
        return rows if rows.dtype == np.float16 and rows.shape[1:] == (self._width,) else None

    def _refresh(self) -> None:
        """Read the keys of new files, and forget removed files."""
        paths = set(self.folder.glob("*.safetensors"))
        if set(self._files) - paths:
            self._files = {path: file for path, file in self._files.items() if path in paths}
            self._places = {key: path for key, path in self._places.items() if path in paths}
        for path in sorted(paths - set(self._files)):
            with suppress(OSError, SafetensorError):  # a file that is gone or damaged
                self._files[path] = safe_open(path, framework="numpy")
                self._places |= dict.fromkeys(self._files[path].keys(), path)

    def _remove_oldest(self) -> None:
        files = [(path, path.stat()) for path in self.folder.glob("[!.]*")]  # those of earlier versions, too
        total = sum(stat.st_size for _, stat in files)
        for path, stat in sorted(files, key=lambda file: file[1].st_mtime)[:-1]:
            if total <= self._most:
                return
            path.unlink(missing_ok=True)
            total -= stat.st_size


@cache
def open_cache(folder: Path, width: int) -> RowCache:
    """Open the cache of a folder, once per process."""
    return RowCache(folder, width)
