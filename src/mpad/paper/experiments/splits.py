"""Splits of documents into training, validation and test parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupShuffleSplit, StratifiedGroupKFold, StratifiedKFold

from mpad.errors import InputError
from mpad.paper.datasets.dataset import Dataset
from mpad.paper.datasets.statistics import text_groups
from mpad.paper.experiments.provenance import digest
from mpad.training.task import hold_out

Rows = NDArray[np.int64]
_FOLDS = 10


@dataclass(frozen=True)
class Split:
    """Rows of a corpus. Without `validation`, a tenth of the training rows is held out by each run's own seed."""

    training: Rows
    validation: Rows | None
    test: Rows

    @property
    def rows(self) -> tuple[Rows, ...]:
        """(training, test) or (training, validation, test), as `cross_validate` takes them."""
        return tuple(part for part in (self.training, self.validation, self.test) if part is not None)

    def digest(self, labels: Sequence[str], fraction: float = 0.0, seed: int = 0) -> str:
        """A few digits that change with any row of any part; `fraction` of the training rows is held out by `seed`."""
        training, validation = self.training, self.validation
        if validation is None:
            chosen, held = hold_out(np.unique(np.asarray(labels)[training], return_inverse=True)[1], fraction, seed)
            training, validation = training[chosen], training[held]
        parts = [np.asarray(part, np.int64).tobytes() for part in (training, validation, self.test)]
        return sha256(b"|".join(sha256(part).digest() for part in parts)).hexdigest()[:16]


@dataclass(frozen=True)
class SplitCorpus:
    """All documents of a dataset, and the ways to split them."""

    texts: list[str]
    labels: list[str]
    splits: list[Split]

    @cached_property
    def digest(self) -> str:
        """Return a digest of the texts and labels."""
        return digest(self.texts, self.labels)


def split(dataset: Dataset, grouped: bool = False) -> SplitCorpus:
    """The dataset's own split, or ten stratified folds where it has no test part; always the same ones."""
    parts = list(dataset.parts.values())
    texts = [text for part in parts for text in part.texts]
    labels = [label for part in parts for label in part.labels or []]
    if dataset.cross_validated:
        folds = _grouped(dataset, labels) if grouped else _plain(labels)
        return SplitCorpus(texts, labels, folds)
    if grouped:
        raise InputError(f"{dataset.name} has a fixed split; only folds can be grouped by text")
    rows, start = {}, 0
    for name, part in dataset.parts.items():
        rows[name] = np.arange(start, start + len(part))
        start += len(part)
    return SplitCorpus(texts, labels, [Split(rows["train"], rows.get("validation"), rows["test"])])


def _plain(labels: Sequence[str]) -> list[Split]:
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0).split(labels, labels)
    return [Split(training, None, test) for training, test in folds]


def _grouped(dataset: Dataset, labels: Sequence[str]) -> list[Split]:
    """Equal texts stand on one side of every line: between training and test, and between training and validation."""
    groups = np.array(text_groups(dataset.train))
    folds = StratifiedGroupKFold(_FOLDS, shuffle=True, random_state=0).split(labels, labels, groups)
    result = []
    for training, test in folds:
        inner = GroupShuffleSplit(1, test_size=0.1, random_state=0)
        kept, held = next(inner.split(training, groups=groups[training]))
        result.append(Split(training[kept], training[held], test))
    return result
