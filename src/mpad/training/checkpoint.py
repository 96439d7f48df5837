"""Checkpoints: training that can be resumed. One file, replaced atomically after every epoch.

It holds the network, the optimizer, the dropout's counters, the best weights so far and the report of every epoch. The
order of the documents is drawn again from the seed. On a CPU, with the same number of threads, resumed training ends
with exactly the weights of uninterrupted training.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from mpad.errors import CheckpointError, InputError, StoreError
from mpad.files.atomic import write_file
from mpad.files.safe_json import as_settings, parse_json
from mpad.training.engine import Engine
from mpad.training.progress import EpochReport
from mpad.training.task import BestWeights, EarlyStopping

_FORMAT = 2  # 1: other names of the engine's tensors
_KEY = "mpad_checkpoint"  # of the file's metadata
_BEST = "best."
_LARGEST = 1e30  # of a weight; training that goes there has diverged and is ended before
_MOST_STEPS = 1 << 53


@dataclass(frozen=True)
class _Facts:
    """A checkpoint's metadata, except its format."""

    fingerprint: str  # of the data and the settings that it belongs to
    seed: int
    epoch: int  # the last that ended
    judge: Any
    reports: Any

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**64:
            raise InputError("its seed is out of range")


@dataclass(frozen=True)
class _Judge:
    """The state of `EarlyStopping`."""

    score: list[float] | None
    epoch: int
    waited: int

    def __post_init__(self) -> None:
        if self.score is not None and len(self.score) != 2:
            raise InputError("its best score is not a pair of numbers")


def _read(path: Path) -> tuple[_Facts | None, list[EpochReport], dict[str, Tensor]]:
    """Return a checkpoint's metadata, reports and tensors; nothing if there is no file.

    Tensors are the engine's, and under "best." the best weights if they are not the present ones.
    """

    def wrong(said: str) -> CheckpointError:
        return CheckpointError(f"{path}: not a checkpoint that can be read ({said}); delete it to start again")

    if not path.exists():
        return None, [], {}
    try:
        if not path.is_file():
            raise wrong("it is no regular file")
        with safe_open(path, framework="pt") as file:
            record = parse_json((file.metadata() or {}).get(_KEY, ""), wrong)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it is no dict
        if record.pop("format") != _FORMAT:
            raise wrong("of another version of mpad")
        facts = as_settings(_Facts, record, wrong)
        reports = [as_settings(EpochReport, one, wrong) for one in facts.reports]
        if len(reports) != facts.epoch or any(report.epoch != k for k, report in enumerate(reports, start=1)):
            raise wrong("its epochs do not follow one another")
        judge = as_settings(_Judge, facts.judge, wrong)
        if not 0 <= judge.epoch <= facts.epoch or not 0 <= judge.waited <= facts.epoch:
            raise wrong("its best epoch is not one of its epochs")
        for name, tensor in tensors.items():
            _check_tensor(name, tensor, wrong)
        return facts, reports, tensors
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise wrong(str(error)) from None


def _check_tensor(name: str, tensor: Tensor, wrong: Callable[[str], CheckpointError]) -> None:
    """Raise if a tensor holds numbers that training never produces: NaN, infinity, negative counts and squares."""
    if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
        raise wrong(f"the tensor '{name[:60]}' holds NaN or infinity")
    if tensor.is_floating_point() and tensor.numel() and float(tensor.abs().max()) > _LARGEST:
        raise wrong(f"the tensor '{name[:60]}' holds numbers beyond {_LARGEST:g}")
    counts = not tensor.is_floating_point() and tensor.dtype != torch.bool
    squares = name.endswith((".v", "running_var"))
    if tensor.numel() and (counts or squares) and (float(tensor.min()) < 0 or float(tensor.max()) >= _MOST_STEPS):
        raise wrong(f"the tensor '{name[:60]}' holds numbers that no training counts to")


class Checkpoint:
    """File that one model's training is written to after every epoch, and resumed from if it exists.

    Without `resume`, an existing file is refused: it is somebody else's, or training that can be resumed.
    """

    def __init__(self, path: Path, resume: bool) -> None:
        self._path = path
        self._saved, self._reports, self._tensors = _read(path)
        if self._saved is not None and not resume:
            raise CheckpointError(
                f"{path}: a training was interrupted; resume it (resume=True in Python, --resume in a shell, "
                "with the same data and settings), or delete it to start again"
            )
        self.seed = None if self._saved is None else self._saved.seed
        self._epoch = 0 if self._saved is None else self._saved.epoch  # the last that is on disk

    def belong_to(self, fingerprint: str, seed: int) -> None:
        """Set what this training is of; raise if the file is of another one."""
        if self._saved is not None and self._saved.fingerprint != fingerprint:
            raise CheckpointError(
                f"{self._path}: is a checkpoint of other data, other settings or another version of mpad; give those "
                "again, or delete it to start again"
            )
        self._fingerprint, self.seed = fingerprint, seed

    def resume(self, engine: Engine, best: BestWeights, judge: EarlyStopping) -> list[EpochReport]:
        """Restore the training state; return the reports of the epochs so far."""
        if self._saved is None:
            return []
        tensors = dict(self._tensors)
        kept = {name.removeprefix(_BEST): tensors.pop(name) for name in list(tensors) if name.startswith(_BEST)}
        own = engine.state()
        if _kinds(own) != _kinds(tensors):
            raise CheckpointError(
                f"{self._path}: was written on another kind of device: resume there, or delete it to start again"
            )
        engine.load_state(tensors)
        judge.load_state(self._saved.judge)
        if kept:
            best.load_state(kept)
        elif judge.epoch:
            best.keep([0])  # the present weights are the best
        return self._reports

    def save(self, engine: Engine, best: BestWeights, judge: EarlyStopping, reports: list[EpochReport]) -> None:
        """Replace what is on disk; if that fails, the last good one stays."""
        epoch = reports[-1].epoch
        tensors = engine.state()
        if judge.epoch != epoch:
            tensors |= {f"{_BEST}{name}": value for name, value in best.state().items()}
        facts = {
            "format": _FORMAT,
            "fingerprint": self._fingerprint,
            "seed": self.seed,
            "epoch": epoch,
            "judge": judge.state(),
            "reports": [asdict(report) for report in reports],
        }
        data = save({name: x.detach().cpu().contiguous() for name, x in tensors.items()}, {_KEY: json.dumps(facts)})
        try:
            write_file(self._path, data)
        except StoreError as error:
            stays = f"; the checkpoint of epoch {self._epoch} stays: make room and resume" if self._epoch else ""
            raise StoreError(f"{error}{stays}") from None
        self._epoch = epoch


def _kinds(tensors: Mapping[str, Tensor]) -> dict[str, tuple[object, ...]]:
    return {name: (x.dtype, *x.shape) for name, x in tensors.items()}


def fingerprint(facts: Any, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return a digest of what a checkpoint belongs to: JSON values, and arrays by name."""
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name, value in arrays.items():
        digest.update(f"{name} {value.dtype} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()
