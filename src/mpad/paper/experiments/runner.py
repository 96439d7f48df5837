"""A cell of a table → its records. What is recorded is not run again, if it is not of an older engine and asked for."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from mpad.environment import precision
from mpad.estimator.classifier import TextClassifier
from mpad.evaluate.cross_validation import cross_validate_in_turn
from mpad.paper.baselines.tfidf_svm import tfidf_svm_config
from mpad.paper.datasets import load_dataset
from mpad.paper.datasets.trees import load_trees
from mpad.paper.experiments import provenance
from mpad.paper.experiments.engines import engine_of
from mpad.paper.experiments.protocol import BASELINE, PLAIN, Cell, make_estimator, make_plain, reads_trees
from mpad.paper.experiments.records import Record, Records, agree
from mpad.paper.experiments.splits import Split, SplitCorpus, split
from mpad.storage.model_folder import as_json
from mpad.text.distilled import vector_sources
from mpad.text.vectors import CORPUS
from mpad.training.progress import Sink, silent

Run = tuple[int, int]  # fold, seed
_DIGITS = 5


@dataclass(frozen=True)
class Runner:
    """Runs cells, on one device and with one file of vectors."""

    records: Records
    vectors: str | None = None
    device: str = "auto"
    options: dict[str, Any] = field(default_factory=dict)  # of the estimator, instead of the protocol's
    current: bool = False  # whether records of older engines are run again
    _loaded: dict[tuple[str, bool, bool], SplitCorpus] = field(default_factory=dict, init=False, repr=False)

    def missing(self, cell: Cell) -> list[Run]:
        """The folds and seeds of a cell that have no record of this configuration and these documents yet."""
        engines = self._engines(cell)
        return [
            run for run in cell.runs if run not in engines or (self.current and engines[run] < engine_of(cell.model))
        ]

    def older(self, cell: Cell) -> list[Run]:
        """The folds and seeds of a cell whose records are of an older engine."""
        engines = self._engines(cell)
        return [run for run in cell.runs if engines.get(run, engine_of(cell.model)) < engine_of(cell.model)]

    def _engines(self, cell: Cell) -> dict[Run, int]:
        """The newest engine that each fold and seed was recorded with; older ones may name other parameters."""
        config, data, now = self._config(cell), self._corpus(cell).digest, engine_of(cell.model)
        result: dict[Run, int] = {}
        for record in self.records:
            if record.setting == (cell.dataset, cell.model, *cell.setting.values()) and record.data == data:
                if agree(record, config, now):
                    run = record.fold, record.seed
                    result[run] = max(record.engine, result.get(run, 0))
        return result

    def run(self, cell: Cell, sink: Sink = silent, done: Callable[[Record], None] = lambda record: None) -> None:
        """Run what is missing; each record is on disk as soon as its model is tested.

        Folds and seeds that train together, as they do on a GPU, are known together.
        """
        missing = self.missing(cell)
        if not missing:
            return
        corpus = self._corpus(cell)
        for record in (self._plain if cell.model in PLAIN else self._network)(cell, corpus, missing, sink):
            self.records.add(record)
            done(record)

    def _network(self, cell: Cell, corpus: SplitCorpus, missing: list[Run], sink: Sink) -> Iterator[Record]:
        origin = self._origin(cell, self.device)
        for folds, seeds in _blocks(missing):
            settings = [self._estimator(cell, random_state=seed, device=self.device) for seed in seeds]
            data, cv = (corpus.texts, corpus.labels), [corpus.splits[fold].rows for fold in folds]
            held = settings[0].validation_fraction
            for result in cross_validate_in_turn(settings, *data, cv=cv, watch=False, group_copies=False, sink=sink):
                fold, seed = folds[result.fold], seeds[result.setting]
                yield Record(
                    **origin,
                    when=_now(),
                    fold=fold,
                    seed=seed,
                    split=corpus.splits[fold].digest(corpus.labels, held, seed),
                    validation_accuracy=round(result.validation_accuracy, _DIGITS),
                    test_accuracy=round(result.test_accuracy, _DIGITS),
                    test_documents=len(result.test),
                    epochs=len(result.reports),
                    best_epoch=result.best_epoch,
                    seconds=round(result.seconds, 3),
                    together=result.together,
                    validation_curve=[round(report.validation_accuracy, _DIGITS) for report in result.reports],
                    loss_curve=[round(report.train_loss, _DIGITS) for report in result.reports],
                )

    def _plain(self, cell: Cell, corpus: SplitCorpus, missing: list[Run], sink: Sink) -> Iterator[Record]:
        """Models that choose no epoch train on validation documents too."""
        origin = self._origin(cell, "cpu")
        for fold, seed in missing:
            part, start = corpus.splits[fold], time.perf_counter()
            model = make_plain(cell, self.vectors).fit(*_at(corpus, np.concatenate(part.rows[:-1])))
            seconds = round(time.perf_counter() - start, 3)
            accuracy = round(float(model.score(*_at(corpus, part.test))), _DIGITS)
            yield Record(
                **origin,
                when=_now(),
                fold=fold,
                seed=seed,
                split=Split(np.concatenate(part.rows[:-1]), None, part.test).digest(corpus.labels),
                validation_accuracy=None,
                test_accuracy=accuracy,
                test_documents=len(part.test),
                epochs=0,
                best_epoch=0,
                seconds=seconds,
                together=1,
                validation_curve=[],
                loss_curve=[],
            )

    def _corpus(self, cell: Cell) -> SplitCorpus:
        """The cell's documents; they stay in memory, for they are asked for again when the cell is run."""
        trees = reads_trees(cell.model)
        key = cell.dataset, cell.grouped, trees
        if key not in self._loaded:
            dataset = load_trees(cell.dataset) if trees else load_dataset(cell.dataset)
            self._loaded[key] = split(dataset, cell.grouped)
        return self._loaded[key]

    def _estimator(self, cell: Cell, **options: Any) -> TextClassifier:
        return make_estimator(cell, self.vectors, **{**self.options, **options})

    def _config(self, cell: Cell) -> dict[str, Any]:
        """Everything that decides what comes out, seed and device aside."""
        if cell.model == BASELINE:
            return tfidf_svm_config()
        plain = cell.model in PLAIN
        estimator = make_plain(cell, self.vectors) if plain else self._estimator(cell)
        matched = {name: as_json(value) for name, value in estimator.get_params(deep=False).items()}
        if matched.get("vectors") not in (None, CORPUS):
            digests = [provenance.digest_vectors(source) for source in vector_sources(matched["vectors"])]
            matched["vectors"] = digests if isinstance(matched["vectors"], list) else digests[0]
        return {name: value for name, value in matched.items() if name not in ("device", "random_state", "verbose")}

    def _vectors(self, cell: Cell) -> str | None:
        """The word vectors of a cell, in words."""
        plain = cell.model in PLAIN
        estimator = make_plain(cell, self.vectors) if plain else self._estimator(cell)
        given = getattr(estimator, "vectors", None)
        if given is None or given == CORPUS:
            return None if given is None else "word2vec on its own text"
        return ", ".join(provenance.describe_vectors(source) for source in vector_sources(given))

    def _origin(self, cell: Cell, device: str) -> dict[str, Any]:
        """Return the fields that all records of a cell share."""
        return {
            "dataset": cell.dataset,
            "model": cell.model,
            **cell.setting,
            "data": self._corpus(cell).digest,
            "vectors": self._vectors(cell),
            "config": self._config(cell),
            "versions": provenance.versions(),
            "commit": provenance.commit(),
            "device": provenance.device_name(device),
            "engine": engine_of(cell.model),
            "precision": precision(device),
        }


def _at(corpus: SplitCorpus, rows: Any) -> tuple[list[str], list[str]]:
    return [corpus.texts[row] for row in rows], [corpus.labels[row] for row in rows]


def _blocks(runs: list[Run]) -> Iterator[tuple[list[int], list[int]]]:
    """Folds and seeds that can train together: every fold with every seed."""
    folds_of: dict[int, list[int]] = {}
    for fold, seed in runs:
        folds_of.setdefault(seed, []).append(fold)
    for folds in dict.fromkeys(tuple(folds) for folds in folds_of.values()):
        yield list(folds), [seed for seed, own in folds_of.items() if tuple(own) == folds]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
