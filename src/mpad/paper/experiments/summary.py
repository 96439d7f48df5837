"""Records of a cell → its mean accuracy, and how sure that is."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, t

from mpad.paper.experiments.protocol import words_of
from mpad.paper.experiments.records import Record, agree

Setting = tuple[str, str, str | None, str | None, bool]  # dataset, model, preset, tokenizer, grouped


@dataclass(frozen=True)
class Summary:
    """Accuracies in percent.

    Over folds, the standard error is that of the mean over folds. On one fixed test part it is that of the mean over
    seeds together with that of having so many test documents and no more: √(s²/n + p(1 − p)/documents).
    """

    records: tuple[Record, ...]
    mean: float
    deviation: float  # between folds, or between seeds
    error: float  # standard error of the mean
    margin: float  # half of the 95 % interval
    validation: float | None

    @property
    def engines(self) -> tuple[int, ...]:
        """The engines that its records were computed by, each once."""
        return tuple(sorted({record.engine for record in self.records}))

    def differs(self, printed: float) -> float:
        """Ours less the printed one, in standard errors."""
        return (self.mean - printed) / self.error if self.error else float("inf") * (self.mean - printed or 1)


Cells = dict[Setting, Summary]
MAIN = "authors"  # the preset of the tables that have room for one
VARIANTS = ("mpad", "mpad-sentence-att", "mpad-clique", "mpad-path")


def find_cell(cells: Cells, dataset: str, model: str, preset: str | None = MAIN) -> Summary | None:
    """Return a cell of the main setting: Kim's words, plain folds."""
    return cells.get((dataset, model, preset, words_of(model, "kim"), False))


def summarise(records: Iterable[Record]) -> Cells:
    """Each cell's summary, over records of one experiment: one configuration, the same documents.

    Where a cell has several of those, the one with the most records stands for it; among equals the latest.
    """
    cells: dict[Setting, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        cells[record.setting][record.key[-1]].append(record)
    return {
        setting: _summary(max(_experiments(result.values()), key=lambda own: (len(own), _latest(own))))
        for setting, result in cells.items()
    }


def _experiments(groups: Iterable[list[Record]]) -> list[list[Record]]:
    """Records by experiment; runs that the newest engine lacks are taken from an older one, if nothing else differs."""
    result: list[dict[tuple[int, int], Record]] = []
    for group in sorted(groups, key=lambda own: (_newest(own), _latest(own)), reverse=True):
        runs = {(record.fold, record.seed): record for record in group}
        for known in result:
            one = next(iter(known.values()))
            if one.data == group[0].data and agree(group[0], one.config, one.engine):
                known.update({run: record for run, record in runs.items() if run not in known})
                break
        else:
            result.append(runs)
    return [list(runs.values()) for runs in result]


def _newest(records: Iterable[Record]) -> int:
    return max(record.engine for record in records)


def _latest(records: Iterable[Record]) -> str:
    return max(record.when for record in records)


def _summary(records: Sequence[Record]) -> Summary:
    by_fold: dict[int, list[float]] = defaultdict(list)
    for record in records:
        by_fold[record.fold].append(100 * record.test_accuracy)
    accuracies = np.array(
        [np.mean(result) for result in by_fold.values()] if len(by_fold) > 1 else by_fold.popitem()[1]
    )
    folds = len({record.fold for record in records})
    mean, n = float(accuracies.mean()), len(accuracies)
    deviation = float(accuracies.std(ddof=1)) if n > 1 else 0.0
    variance = deviation**2 / n
    quantile = float(norm.ppf(0.975))
    if folds == 1:
        variance += mean * (100 - mean) / records[0].test_documents
    else:
        quantile = float(t.ppf(0.975, folds - 1))
    validations = [record.validation_accuracy for record in records if record.validation_accuracy is not None]
    return Summary(
        tuple(records),
        mean,
        deviation,
        error=variance**0.5,
        margin=quantile * variance**0.5,
        validation=100 * float(np.mean(validations)) if validations else None,
    )
