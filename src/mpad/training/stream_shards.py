"""Packed graphs and targets in files: written once, whole or not at all, and read as often as training wants.

A shard is a safetensors file, its numbers in the narrowest type that holds them. Its name is a digest of what it was
made of and how; so one that is there is right, and one that a killed process left half-written has another name, and is
never used.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from mpad.errors import DataFileError
from mpad.files.atomic import write_file
from mpad.graph.packed import PackedGraphs, concatenate

_TYPES = {
    "words": np.int32,
    "node_start": np.int64,
    "source": np.int32,
    "target": np.int32,
    "weight": np.float32,
    "edge_start": np.int64,
    "document_start": np.int64,
    "count": np.int32,
}  # in memory
_HASHES = "text_hashes"


@dataclass(frozen=True)
class Shard:
    """Some documents of a corpus in a file."""

    path: Path
    documents: int


def write_shard(path: Path, graphs: PackedGraphs, targets: NDArray[Any], hashes: NDArray[np.uint64]) -> Shard:
    """Write documents, their targets and the hashes of their texts (`text_hashes`)."""
    arrays = {name: _narrowed(getattr(graphs, name)) for name in _TYPES if getattr(graphs, name) is not None}
    arrays |= {"targets": np.ascontiguousarray(targets), _HASHES: hashes.view(np.int64)}
    write_file(path, save(arrays, {"documents": str(len(targets))}), private=True)
    return Shard(path, len(targets))


def _narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers in one or two bytes each if they fit; most graphs have few nodes and small counts."""
    highest = array.max(initial=0)
    for kind in (np.uint8, np.uint16):
        if highest <= np.iinfo(kind).max and array.min(initial=0) >= 0:
            narrow = array.astype(kind)
            if (narrow == array).all():  # weights of distant words are no whole numbers
                return narrow
    return np.ascontiguousarray(array)


def read_shard(shard: Shard) -> tuple[PackedGraphs, NDArray[Any]]:
    """Return documents and their targets."""
    try:
        with safe_open(shard.path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys() if name != _HASHES}  # noqa: SIM118, no dict
        targets = arrays.pop("targets")
        graphs = PackedGraphs(**{name: array.astype(_TYPES[name], copy=False) for name, array in arrays.items()})
    except (SafetensorError, OSError, KeyError, TypeError) as error:
        raise DataFileError(
            f"{shard.path}: a shard that cannot be read ({error}); remove it, and begin again"
        ) from None
    if not len(graphs) == len(targets) == shard.documents:
        raise DataFileError(f"{shard.path}: expected {shard.documents:,} documents; remove it, and begin again")
    return graphs, targets


def read_hashes(shard: Shard) -> NDArray[np.uint64]:
    """Read the hashes of the documents' texts, equal for equal texts: (documents,)."""
    try:
        with safe_open(shard.path, framework="numpy") as file:
            hashes: NDArray[np.uint64] = file.get_tensor(_HASHES).view(np.uint64)
    except (SafetensorError, OSError) as error:
        raise DataFileError(f"{shard.path}: cannot be read ({error}); remove it, and begin again") from None
    if hashes.shape != (shard.documents,):
        raise DataFileError(f"{shard.path}: expected {shard.documents:,} documents; remove it, and begin again")
    return hashes


def read_shards(shards: Sequence[Shard]) -> tuple[PackedGraphs, NDArray[Any]]:
    """Read several shards, one after another."""
    parts = [read_shard(shard) for shard in shards]
    return concatenate([graphs for graphs, _ in parts]), np.concatenate([targets for _, targets in parts])


def write_list(path: Path, shards: Sequence[Shard]) -> None:
    """Record the shards of a piece of a corpus, once all of them are written."""
    write_file(path, json.dumps([[shard.path.name, shard.documents] for shard in shards]).encode(), private=True)


def read_list(path: Path) -> list[Shard] | None:
    """Return the shards of a piece; None if some are missing."""
    try:
        listed = [Shard(path.with_name(str(name)), int(n)) for name, n in json.loads(path.read_bytes())]
    except (OSError, ValueError, TypeError):
        return None
    return listed if all(shard.path.is_file() for shard in listed) else None
