"""A disk cache of rows of numbers that are slow to compute.

Each `put` writes two files: NAME.npy with all rows, and NAME.keys.npy with the rows of each key. Both are written
atomically, the keys last; rows are mapped into memory. When the files exceed `most` bytes together, the least recently
used ones are removed.
"""

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

from mpad.errors import StoreError
from mpad.files import atomic
from mpad.files.cache import make_private

Rows = NDArray[np.float16]
_KEYS = ".keys.npy"
_ENTRY = np.dtype([("key", "S32"), ("first", "<i8"), ("last", "<i8")])
MOST_BYTES = 8 << 30


class RowCache:
    """Arrays of float16, (any number, width), by keys of 32 letters."""

    def __init__(self, folder: Path, width: int, most: int = MOST_BYTES) -> None:
        self.folder, self._width, self._most = folder, width, most
        self._places: dict[bytes, tuple[str, int, int]] = {}
        self._rows: dict[str, Rows] = {}
        self._lock = Lock()

    def get(self, keys: Sequence[bytes]) -> list[Rows | None]:
        """Return the rows of each key; None if they are not cached."""
        with self._lock:
            self._refresh()
            places = [self._places.get(key) for key in keys]
            result = [None if place is None else self._rows[place[0]][place[1] : place[2]] for place in places]
        for name in {place[0] for place in places if place is not None}:
            with suppress(OSError):  # marks it as recently used
                os.utime(self.folder / f"{name}.npy")
        return result

    def put(self, keys: Sequence[bytes], arrays: Sequence[NDArray[np.floating]]) -> None:
        """Store the rows of each key, if the folder can be written."""
        ends = np.cumsum([len(array) for array in arrays])
        entries = np.zeros(len(keys), _ENTRY)
        entries["key"], entries["last"] = list(keys), ends
        entries["first"][1:] = ends[:-1]
        name = token_hex(8)
        with suppress(StoreError, OSError):
            make_private(self.folder)
            _write(self.folder / f"{name}.npy", np.concatenate(arrays).astype(np.float16))
            _write(self.folder / (name + _KEYS), entries)
            self._remove_oldest()

    def _refresh(self) -> None:
        """Read the keys of new files, and forget removed files."""
        names = {path.name.removesuffix(_KEYS) for path in self.folder.glob(f"*{_KEYS}")}
        for name in set(self._rows) - names:
            del self._rows[name]
            self._places = {key: place for key, place in self._places.items() if place[0] != name}
        for name in sorted(names - set(self._rows)):
            with suppress(OSError, ValueError):  # a file that is gone or damaged
                entries: NDArray[Any] = np.load(self.folder / (name + _KEYS))
                rows = np.load(self.folder / f"{name}.npy", mmap_mode="r")
                if entries.dtype != _ENTRY or rows.dtype != np.float16 or rows.shape[1:] != (self._width,):
                    continue
                if len(entries) and not 0 <= entries["first"].min() <= entries["last"].max() <= len(rows):
                    continue
                self._rows[name] = rows
                for key, first, last in entries.tolist():
                    self._places[key] = name, first, last

    def _remove_oldest(self) -> None:
        files = [(path, path.stat()) for path in self.folder.glob("*.npy") if not path.name.endswith(_KEYS)]
        total = sum(stat.st_size for _, stat in files)
        for path, stat in sorted(files, key=lambda file: file[1].st_mtime)[:-1]:
            if total <= self._most:
                return
            path.with_name(path.stem + _KEYS).unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            total -= stat.st_size


def _write(path: Path, array: NDArray[Any]) -> None:
    with atomic.replacing(path, private=True) as temporary, temporary.open("wb") as file:
        np.save(file, array)


@cache
def open_cache(folder: Path, width: int) -> RowCache:
    """Open the cache of a folder, once per process."""
    return RowCache(folder, width)
