"""The provenance of a number: commit, versions, device, vectors."""

import os
import platform
import subprocess
from collections.abc import Iterable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from mpad._version import __version__
from mpad.errors import VectorFileError
from mpad.text.distilled import piece_vectors

_ENDS = 1 << 22


def commit() -> str:
    """The commit that is checked out, with a + where files differ from it; MPAD_COMMIT where there is no checkout."""
    if named := os.environ.get("MPAD_COMMIT"):
        return named
    tracked = _git("ls-files", "--error-unmatch", Path(__file__).name)  # or the checkout around us is another project's
    return (_git("describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*") if tracked else "") or "unknown"


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, cwd=Path(__file__).parent)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def digest(texts: Iterable[str], labels: Iterable[str]) -> str:
    """A few digits that change with any document, any label, and their order."""
    result = sha256()
    for text, label in zip(texts, labels, strict=True):
        result.update(f"{label}\t{text}\n".encode("utf-8", "surrogatepass"))
    return result.hexdigest()[:16]


def digest_vectors(source: str | Path) -> str:
    """Return the digest of a source of vectors: a model to distill, or the size, beginning and end of a file."""
    path = Path(source)
    if path.is_dir():
        return sha256(piece_vectors(str(source)).table.tobytes()).hexdigest()[:16]
    if not path.is_file():
        raise VectorFileError(f"{path}: no such file; expected word vectors (word2vec, GloVe, fastText or .npz)")
    size = path.stat().st_size
    with path.open("rb") as file:
        result = sha256(str(size).encode() + file.read(_ENDS))
        file.seek(max(0, size - _ENDS))
        result.update(file.read())
    return result.hexdigest()[:16]


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    result = {name: version(name) for name in ("torch", "numpy", "scikit-learn")}
    return {"mpad": __version__, "python": platform.python_version(), **result}


def device_name(device: str) -> str:
    """Return the device in words."""
    import torch

    from mpad.network import find_device

    result = find_device(device)
    return torch.cuda.get_device_name(result) if result.type == "cuda" else f"{result.type}, {os.cpu_count()} cores"


def describe_vectors(path: str | Path) -> str:
    """Name a file or a model of vectors; of a file that marks its genuine rows, say how many of them there are."""
    path = Path(path)
    if path.is_dir():
        return f"distilled from {path.parent.name if path.name == 'model' else path.name}"
    if path.suffix == ".npz" and path.is_file():
        with np.load(path, allow_pickle=False) as file:
            if "genuine" in file:
                genuine: Any = file["genuine"]
                return f"{path.stem}: {int(genuine.sum()):,} of {len(genuine):,} rows genuine, the rest estimates"
    return path.stem
