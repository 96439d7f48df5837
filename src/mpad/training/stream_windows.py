"""Shuffled windows of shards: which documents each step sees, of a corpus that is on disk.

A corpus is read in lanes. Each epoch the shards are dealt out to the lanes anew, and a lane reads a window of its
shards at a time, shuffles the documents within it and gives its share of each batch. A process reads one lane or
several: two processes of one lane each see the very batches that one process of two lanes sees.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from mpad.errors import DataFileError
from mpad.files.atomic import write_file
from mpad.graph.packed import PackedGraphs, concatenate, take_documents

Rows = NDArray[np.int64]
_ORDER, _DEAL = 2, 3  # what random numbers are for: streams of their own


def _uniform(hashes: NDArray[np.uint64], seed: int) -> NDArray[np.float64]:
    """Draw a number from 0 to 1 for each hash, always the same for one hash and seed (the finalizer of splitmix64)."""
    with np.errstate(over="ignore"):
        x = hashes + np.uint64(seed % 2**32 + 1) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray((x ^ (x >> np.uint64(31))) / 2.0**64)


@dataclass(frozen=True)
class Window:
    """Documents in memory, and which of them each step learns from."""

    graphs: PackedGraphs
    targets: NDArray[Any]
    batches: list[Rows]  # rows of this window, a step each
    before: list[int]  # documents of the lanes before these, in each step's whole batch
    documents: int  # that are learnt from, of all lanes together


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


@dataclass(frozen=True)
class ShardedCorpus:
    """A corpus on disk, a part of it held out."""

    shards: Sequence[Shard]
    held_out: float  # share of documents
    seed: int
    lanes: int = 1
    window: int = 32_768  # documents of a lane that are in memory together

    def held(self, number: int) -> NDArray[np.bool_]:
        """Return which documents of a shard are held out: (documents,). Equal texts, in any shard, share their fate."""
        return np.asarray(_uniform(self._hashes[number], self.seed) < self.held_out)

    @cached_property
    def _hashes(self) -> list[NDArray[np.uint64]]:
        return [read_hashes(shard) for shard in self.shards]

    @property
    def copies(self) -> int:
        """Count documents whose text appeared in an earlier one."""
        hashes = np.concatenate(self._hashes) if self.shards else np.zeros(0, np.uint64)
        return len(hashes) - len(np.unique(hashes))

    def held_out_documents(self) -> tuple[PackedGraphs, NDArray[Any]]:
        """Return all held-out documents."""
        graphs, targets = [], []
        for number, shard in enumerate(self.shards):
            chosen = np.flatnonzero(self.held(number))
            if len(chosen):
                packed, truth = read_shard(shard)
                graphs.append(take_documents(packed, chosen))
                targets.append(truth[chosen])
        if not graphs:
            packed, truth = read_shard(self.shards[0])
            return take_documents(packed, np.zeros(0, np.int64)), truth[:0]
        return concatenate(graphs), np.concatenate(targets)

    def rounds(self, epoch: int) -> int:
        """Return the number of windows of an epoch."""
        return max(len(deal) for deal in self._deal(epoch))

    def windows(self, epoch: int, batch_size: int, mine: Sequence[int], most: int | None = None) -> Iterator[Window]:
        """Yield the windows of an epoch for the lanes `mine`, in order; `most` limits the documents of all lanes."""
        deals = self._deal(epoch)
        seen = 0
        for turn in range(self.rounds(epoch)):
            groups = [deal[turn] if turn < len(deal) else [] for deal in deals]
            rows = [self._rows(group, epoch, turn, lane) for lane, group in enumerate(groups)]
            counts = [len(own) for own in rows]
            share = max(1, batch_size // self.lanes)
            if min(counts) == 0:
                return  # a lane has run out: what the others have left comes in another epoch
            steps = min(max(-(-n // share) for n in counts), min(counts))  # every lane has a document in every step
            cut = [np.array_split(own, steps) for own in rows]
            graphs, targets = read_shards([self.shards[number] for lane in mine for number in groups[lane]])
            starts = np.cumsum([0, *[self._documents(groups[lane]) for lane in mine]])
            shift = dict(zip(mine, starts[:-1].tolist(), strict=True))
            batches = [np.concatenate([cut[lane][k] + shift[lane] for lane in mine]) for k in range(steps)]
            before = [sum(len(cut[lane][k]) for lane in range(min(mine))) for k in range(steps)]
            yield Window(graphs, targets, batches, before, sum(counts))
            seen += sum(counts)
            if most is not None and seen >= most:
                return

    def sample(self, most: int) -> tuple[PackedGraphs, Rows]:
        """Some training documents of randomly drawn shards: graphs, and which of them."""
        order = np.random.default_rng([self.seed, _DEAL]).permutation(len(self.shards)).tolist()
        total = np.cumsum([self.shards[number].documents for number in order])
        chosen = order[: 1 + int(np.searchsorted(total, most))]
        trained = ~np.concatenate([self.held(number) for number in chosen])
        return read_shards([self.shards[number] for number in chosen])[0], np.flatnonzero(trained)

    def _deal(self, epoch: int) -> list[list[list[int]]]:
        """Shards of each lane, in groups that make up a window."""
        order = np.random.default_rng([self.seed, _DEAL, epoch % 2**32]).permutation(len(self.shards)).tolist()
        deals = []
        for lane in range(self.lanes):
            groups: list[list[int]] = [[]]
            for number in order[lane :: self.lanes]:
                if self._documents(groups[-1]) >= self.window:
                    groups.append([])
                groups[-1].append(number)
            deals.append(groups)
        return deals

    def _documents(self, group: Sequence[int]) -> int:
        return sum(self.shards[number].documents for number in group)

    def _rows(self, group: Sequence[int], epoch: int, turn: int, lane: int) -> Rows:
        """Return the training rows of a lane's window, shuffled."""
        if not group:
            return np.zeros(0, np.int64)
        trained = np.flatnonzero(~np.concatenate([self.held(number) for number in group]))
        return np.random.default_rng([self.seed, _ORDER, epoch % 2**32, turn, lane]).permutation(trained)
