"""Atomic writes of files and folders that never remove other files.

Data is written to a temporary path next to the destination, synced to the disk (fsync), and swapped in by one rename.
A folder replaces another by Linux's rename exchange, so that a reader finds the old or the new one at every moment;
without an exchange, the old one is moved away first. Writers of one folder take turns, and the next writer removes what
a killed one left.
"""

import ctypes
import errno
import glob
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from mpad.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows: no locks, so concurrent writers are not supported
    fcntl = None  # type: ignore[assignment]

Ours = Callable[[Path], Set[str] | None]  # names that a folder of ours may hold; None if it is not ours
_EXCHANGE = 2  # RENAME_EXCHANGE of <linux/fs.h>
_HERE = -100  # AT_FDCWD
_FRESH = 0.1  # seconds; a file may be younger than its lock


def write_file(path: Path, data: bytes, private: bool = False) -> None:
    """Write a file atomically; only the owner can read a private one."""
    with replacing(path, private) as temporary:
        temporary.write_bytes(data)


@contextmanager
def replacing(path: Path, private: bool = False) -> Iterator[Path]:
    """Yield the path of an empty temporary file; it replaces `path` at the end."""
    temporary = path.with_name(f"{_prefix(path)}{secrets.token_hex(4)}.tmp")
    try:
        temporary.touch(mode=0o600 if private else 0o666)
        with _lock(temporary):  # locked: not cleared as a leftover
            yield temporary
            _sync(temporary)
            temporary.replace(path)
        _sync(path.parent)
        clear_temporary(temporary_files(path.parent, path.name))
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {_reason(error)}") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def clear_temporary(files: Iterable[Path]) -> None:
    """Remove the temporary files of killed writers."""
    for left in files:
        with suppress(OSError):
            left.unlink()


def temporary_files(folder: Path, name: str | None = None) -> list[Path]:
    """List the temporary files of killed writers in a folder, or of one file; active writers hold a lock."""
    prefix = ".*.mpad-" if name is None else glob.escape(_prefix(folder / name))
    result = []
    for left in folder.glob(f"{prefix}*.tmp"):
        with suppress(OSError):
            if left.is_file() and time.time() - left.stat().st_mtime > _FRESH:  # a fresh one may not be locked yet
                with _lock(left, wait=False):
                    result.append(left)
    return result


def check_destination(folder: Path, ours: Ours) -> Path:
    """Check that a folder can be written, before the work starts; return its absolute path without symbolic links.

    Missing parents are created.
    """
    try:
        folder = folder.resolve()
    except (OSError, RuntimeError) as error:  # a link that leads to itself
        raise StoreError(f"{folder} cannot be written: {error}; choose another place") from None
    if Path.cwd().is_relative_to(folder):
        raise StoreError(f"{folder} is the folder you are in; name one inside it, or go elsewhere")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _lock(folder.parent):  # no other writer swaps it during the check
            if folder.exists():
                _check_ours(folder, ours)
            trial = _temporary_path(folder)
            trial.mkdir()
            trial.rmdir()
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {_reason(error)}; choose another place") from None
    return folder


def _check_ours(folder: Path, ours: Ours) -> Set[str]:
    """Return the names in an existing folder; raise unless all of them are ours."""
    if not folder.is_dir():
        raise StoreError(f"{folder} is a file, not a folder; choose another name")
    entries = list(folder.iterdir())
    names = {entry.name for entry in entries}
    if not names:
        return names
    own = ours(folder)
    if own is None:
        raise StoreError(f"{folder} is there already and is not a model; choose another folder, or remove it")
    foreign = sorted(
        entry.name for entry in entries if entry.name not in own or not entry.is_file() or entry.is_symlink()
    )
    if foreign:
        shown = ", ".join(foreign[:5]) + (" …" if len(foreign) > 5 else "")
        raise StoreError(f"{folder} holds more than a model ({shown}); move that away, or choose another folder")
    return names


@contextmanager
def write_folder(folder: Path, ours: Ours) -> Iterator[Path]:
    """Yield an empty folder to write files to; it replaces `folder` at the end."""
    folder = check_destination(folder, ours)
    fresh, swapped = _temporary_path(folder), False
    try:
        with ExitStack() as lock:
            with _lock(folder.parent):
                fresh.mkdir()
                lock.enter_context(_lock(fresh))  # locked: not cleared as a leftover
            yield fresh
            for file in fresh.iterdir():
                _sync(file)
            _sync(fresh)
            with _lock(folder.parent):
                names = _check_ours(folder, ours) if folder.exists() else frozenset()
                old = _swap(fresh, folder)
                swapped = True
                with suppress(OSError):  # saved; the next writer clears what is left of the old folder
                    _sync(folder.parent)
                    _remove(old, names)
                    _clear_leftovers(folder)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written: {_reason(error)}") from None
    finally:
        if not swapped:
            with suppress(OSError):
                _remove(fresh, [file.name for file in fresh.iterdir()])


def _temporary_path(folder: Path) -> Path:
    return folder.with_name(f"{_prefix(folder)}{secrets.token_hex(4)}.tmp")


def _prefix(folder: Path) -> str:
    return f".{folder.name}.mpad-"


def _swap(fresh: Path, folder: Path) -> Path:
    """Put a folder in another's place; return the path of the old one."""
    if not folder.exists():
        fresh.rename(folder)
        return fresh
    if _exchange(fresh, folder):
        return fresh
    old = _temporary_path(folder)
    folder.rename(old)
    try:
        fresh.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    return old


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step; return False if the system or file system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    if ctypes.get_errno() in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(other))


def _remove(folder: Path, names: Iterable[str]) -> None:
    """Remove these files of a folder, and the folder if it is then empty."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def _clear_leftovers(folder: Path) -> None:
    """Remove temporary folders of killed writers; active writers hold a lock."""
    for left in folder.parent.glob(f"{glob.escape(_prefix(folder))}*.tmp"):
        with suppress(OSError), _lock(left, wait=False):
            _remove(left, [entry.name for entry in left.iterdir() if entry.is_file()])


@contextmanager
def _lock(folder: Path, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a file or folder, which ends with the process; without `wait` raise BlockingIOError."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN):
                raise
            # some network file systems have no locks
        yield
    finally:
        os.close(handle)


def _sync(path: Path) -> None:
    """Flush a file or folder to the disk; some systems cannot open folders."""
    with suppress(PermissionError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # folders of some file systems
                raise
        finally:
            os.close(handle)


def _reason(error: OSError) -> str:
    reasons = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "your quota on that disk is used up"}
    if error.errno in reasons:
        return reasons[error.errno]
    return f"{error.strerror or error} ({error.filename})" if error.filename else str(error.strerror or error)
