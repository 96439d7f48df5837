"""Where a number comes from: commit, versions, device, vectors."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np


def commit() -> str:
    """The commit that is checked out, with a + where files differ from it; MPAD_COMMIT where there is no checkout."""
    if named := os.environ.get("MPAD_COMMIT"):
        return named
    here = Path(__file__).parent
    command = ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=here).stdout.strip() or "unknown"
    except OSError:
        return "unknown"


def versions() -> dict[str, str]:
    """Of Python and of what the numbers hang on."""
    from mpad.version import __version__

    found = {name: version(name) for name in ("torch", "numpy", "scikit-learn")}
    return {"mpad": __version__, "python": platform.python_version(), **found}


def device_name(device: str) -> str:
    """The device in words."""
    import torch

    from mpad.training.device import find_device

    found = find_device(device)
    return torch.cuda.get_device_name(found) if found.type == "cuda" else f"{found.type}, {os.cpu_count()} cores"


def describe_vectors(path: str | Path) -> str:
    """Name a file of vectors; of one that marks its genuine rows, say how many of them there are."""
    path = Path(path)
    if path.suffix == ".npz" and path.is_file():
        with np.load(path, allow_pickle=False) as file:
            if "genuine" in file:
                genuine: Any = file["genuine"]
                return f"{path.stem}: {int(genuine.sum()):,} of {len(genuine):,} rows genuine, the rest estimates"
    return path.stem
