"""Records of runs: a line of JSON for each dataset, model, setting, fold and seed, appended as soon as it is known.

Lines stand in `<folder>/<dataset>/<model>.jsonl`. A line is written by one call, so that a process that is killed
leaves whole lines behind; a line that was cut all the same is told in the log, and run again.
"""

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mpad.errors import DataFileError
from mpad.files.encoding import decode, split_lines

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Record:
    """One trained and tested model."""

    dataset: str
    model: str
    preset: str | None
    tokenizer: str | None
    grouped: bool
    fold: int
    seed: int
    validation_accuracy: float | None
    test_accuracy: float
    test_documents: int
    epochs: int
    best_epoch: int
    seconds: float  # of all models that trained together
    together: int
    data: str  # digest of the documents and labels
    vectors: str | None  # in words
    config: dict[str, Any]  # with the vectors' digest
    versions: dict[str, str]
    commit: str
    device: str
    when: str
    validation_curve: list[float]  # accuracy after each epoch
    loss_curve: list[float]  # mean training loss of each epoch
    engine: int = 0  # version of what the system computes (engines.py)
    precision: str | None = None  # how numbers were rounded, where that was kept
    split: str | None = None  # digest of which documents trained, chose the epoch and tested, where that was kept

    def __str__(self) -> str:
        setting = [word for word in (self.preset, self.tokenizer, "grouped" if self.grouped else None) if word]
        parts = [f"{self.dataset} {self.model}", *setting, f"fold {self.fold}", f"seed {self.seed}"]
        if self.validation_accuracy is not None:
            parts += [f"epoch {self.best_epoch} of {self.epochs}", f"validation {100 * self.validation_accuracy:.2f}"]
        return ", ".join([*parts, f"test {100 * self.test_accuracy:.2f}", f"{self.seconds:.1f} s"])

    @property
    def key(self) -> Key:
        """Return the identity of a record."""
        return (*self.setting, self.fold, self.seed, fingerprint(self.config, self.data))

    @property
    def setting(self) -> tuple[str, str, str | None, str | None, bool]:
        """The cell that it belongs to."""
        return self.dataset, self.model, self.preset, self.tokenizer, self.grouped


def agree(record: Record, config: dict[str, Any], engine: int) -> bool:
    """Return whether a record matches this configuration in the parameters that it names.

    An older engine's may also have a fixed value where "auto" stands today, or the other way round.
    """
    if record.engine > engine:
        return False
    pairs = [(value, config[name]) for name, value in record.config.items() if name in config]
    return all(one == other or (record.engine < engine and "auto" in (one, other)) for one, other in pairs)


def fingerprint(config: dict[str, Any], data: str) -> str:
    """Return the settings other than fold and seed; records that differ in them are of different experiments."""
    return json.dumps([config, data], sort_keys=True)


class Records:
    """The records under a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[Key, Record] = {}
        for record in _read(folder):
            self._keep(record)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._known.values())

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def _keep(self, record: Record) -> None:
        known = self._known.get(record.key)
        if known is None or known.engine <= record.engine:
            self._known[record.key] = record

    def add(self, record: Record) -> None:
        """Keep a record, on disk before this returns."""
        file = self.folder / record.dataset / f"{record.model}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(asdict(record), ensure_ascii=False) + "\n"
        with file.open("ab+") as out:
            if out.tell() and not _ends_with_newline(file):
                out.write(b"\n")  # after a line that was cut
            out.write(line.encode("utf-8"))
            out.flush()
            os.fsync(out.fileno())
        self._keep(record)


def _ends_with_newline(file: Path) -> bool:
    with file.open("rb") as opened:
        opened.seek(-1, os.SEEK_END)
        return opened.read(1) == b"\n"


def _read(folder: Path) -> Iterator[Record]:
    for file in sorted(folder.glob("*/*.jsonl")):
        for number, line in enumerate(split_lines(decode(str(file), file.read_bytes())), start=1):
            if not line.strip():
                continue
            try:
                yield Record(**json.loads(line))
            except json.JSONDecodeError as error:
                if not line.startswith('{"dataset"'):
                    raise DataFileError(f"{file}, line {number}: not a record: {error}") from None
                logging.getLogger(__name__).warning("%s, line %d was cut while it was written: run again", file, number)
            except TypeError as error:
                raise DataFileError(f"{file}, line {number}: not a record of this version of mpad: {error}") from None
