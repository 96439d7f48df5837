"""Where mpad keeps what it can make again."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """~/.cache/mpad, or $XDG_CACHE_HOME/mpad."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mpad"
