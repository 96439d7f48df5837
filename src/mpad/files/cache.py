"""The cache folder, for data that can be recomputed."""

import os
from contextlib import suppress
from pathlib import Path


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
