"""Files and folders that appear whole or not at all, and that never cost anybody another file.

What is written goes to a place beside its destination, reaches the disk (fsync), and is then swapped in by one rename.
A folder takes the place of another by Linux's rename exchange, so that a reader finds the old one or the new one at
every moment; where the system has no exchange, the old one is moved away first. Writers of one folder take turns, and
what a killed one leaves beside the destination is cleared by the next.
"""

import ctypes
import errno
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
except ImportError:  # Windows: writers are on their own there
    fcntl = None  # type: ignore[assignment]

Ours = Callable[[Path], Set[str] | None]  # names that a folder of ours may hold; None where it is not one of ours
_EXCHANGE = 2  # RENAME_EXCHANGE of <linux/fs.h>
_HERE = -100  # AT_FDCWD
_JUST_NOW = 0.1  # seconds


def write_file(path: Path, data: bytes, private: bool = False) -> None:
    """Write a file: whoever reads it finds what was there before or all of this. Only its owner reads a private one."""
    with replacing(path, private) as beside:
        beside.write_bytes(data)


@contextmanager
def replacing(path: Path, private: bool = False) -> Iterator[Path]:
    """Give the name of an empty file beside `path` to write to; when all is written, it takes the place of `path`."""
    beside = path.with_name(f"{_prefix(path)}{secrets.token_hex(4)}.tmp")
    try:
        beside.touch(mode=0o600 if private else 0o666)
        with _locked(beside):  # as long as this lasts, nobody takes it for a leftover
            yield beside
            _sync(beside)
            beside.replace(path)
        _sync(path.parent)
        clear_temporary(temporary_files(path.parent, path.name))
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {_reason(error)}") from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def clear_temporary(files: Iterable[Path]) -> None:
    """Remove what writers that were killed left."""
    for left in files:
        with suppress(OSError):
            left.unlink()


def temporary_files(folder: Path, name: str | None = None) -> list[Path]:
    """What writers of files of this folder, or of the one of that name, left that were killed; others hold a lock."""
    prefix = ".*.mpad-" if name is None else _escaped(_prefix(folder / name))
    result = []
    for left in folder.glob(f"{prefix}*.tmp"):
        with suppress(OSError):
            if left.is_file() and time.time() - left.stat().st_mtime > _JUST_NOW:  # else it may not be locked yet
                with _locked(left, wait=False):
                    result.append(left)
    return result


def check_destination(folder: Path, ours: Ours) -> Path:
    """Say where a folder will be written, or why it cannot be: asked before the work, not after it.

    The answer is an absolute path without symbolic links. Parents that are missing are made, nothing else is left.
    """
    try:
        folder = folder.resolve()
    except (OSError, RuntimeError) as error:  # a link that leads to itself
        raise StoreError(f"{folder} cannot be written: {error}; choose another place") from None
    if Path.cwd().is_relative_to(folder):
        raise StoreError(f"{folder} is the folder you are in; name one inside it, or go elsewhere")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent):  # nobody swaps it while we look
            if folder.exists():
                _check_ours(folder, ours)
            trial = _beside(folder)
            trial.mkdir()
            trial.rmdir()
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {_reason(error)}; choose another place") from None
    return folder


def _check_ours(folder: Path, ours: Ours) -> Set[str]:
    """Names of what an existing folder holds, all of it ours."""
    if not folder.is_dir():
        raise StoreError(f"{folder} is a file, not a folder; choose another name")
    entries = list(folder.iterdir())
    there = {entry.name for entry in entries}
    if not there:
        return there
    own = ours(folder)
    if own is None:
        raise StoreError(f"{folder} is there already and is not a model; choose another folder, or remove it")
    foreign = sorted(
        entry.name for entry in entries if entry.name not in own or not entry.is_file() or entry.is_symlink()
    )
    if foreign:
        shown = ", ".join(foreign[:5]) + (" …" if len(foreign) > 5 else "")
        raise StoreError(f"{folder} holds more than a model ({shown}); move that away, or choose another folder")
    return there


@contextmanager
def write_folder(folder: Path, ours: Ours) -> Iterator[Path]:
    """Give an empty folder to write files to; when all is written, it takes the place of `folder`."""
    folder = check_destination(folder, ours)
    fresh, swapped = _beside(folder), False
    try:
        with ExitStack() as lock:
            with _locked(folder.parent):
                fresh.mkdir()
                lock.enter_context(_locked(fresh))  # as long as this lasts, nobody takes it for a leftover
            yield fresh
            for file in fresh.iterdir():
                _sync(file)
            _sync(fresh)
            with _locked(folder.parent):
                names = _check_ours(folder, ours) if folder.exists() else frozenset()
                old = _swap(fresh, folder)
                swapped = True
                with suppress(OSError):  # it is saved: what is left of the old one is cleared by the next writer
                    _sync(folder.parent)
                    _remove(old, names)
                    _clear_leftovers(folder)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written: {_reason(error)}") from None
    finally:
        if not swapped:  # afterwards the old folder is there, of which only our files go
            with suppress(OSError):
                _remove(fresh, [file.name for file in fresh.iterdir()])


def _beside(folder: Path) -> Path:
    return folder.with_name(f"{_prefix(folder)}{secrets.token_hex(4)}.tmp")


def _prefix(folder: Path) -> str:
    return f".{folder.name}.mpad-"


def _swap(fresh: Path, folder: Path) -> Path:
    """Put a folder in another's place; where that one is now."""
    if not folder.exists():
        fresh.rename(folder)
        return fresh
    if _exchange(fresh, folder):
        return fresh
    old = _beside(folder)
    folder.rename(old)
    try:
        fresh.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    return old


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names at once; False where the system or the file system cannot."""
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
    """Remove these files of a folder, and the folder; if anything else has come into it, that stays."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def _clear_leftovers(folder: Path) -> None:
    """Remove what writers of this folder left that were killed; those at work hold a lock."""
    for left in folder.parent.glob(f"{_escaped(_prefix(folder))}*.tmp"):
        with suppress(OSError), _locked(left, wait=False):
            _remove(left, [entry.name for entry in left.iterdir() if entry.is_file()])


def _escaped(name: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)


@contextmanager
def _locked(folder: Path, wait: bool = True) -> Iterator[None]:
    """Hold a folder's lock; it ends with the process, however that ends. BlockingIOError if another has it."""
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
            # some network file systems have no locks: writers are on their own there
        yield
    finally:
        os.close(handle)


def _sync(path: Path) -> None:
    """Have a file or folder reach the disk; folders cannot be opened everywhere."""
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
