"""Training as a ladder of short steps: train → epochs → an engine's epoch → its steps."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from mpad import kernels
from mpad.errors import NotFinite
from mpad.training.checkpoint import Checkpoint
from mpad.training.config import TrainingConfig
from mpad.training.engine import Engine, find_engine
from mpad.training.progress import EpochReport, Sink, silent
from mpad.training.stopping import BestWeights, EarlyStopping
from mpad.training.task import Batches, Result, Task, check_together


@dataclass(frozen=True)
class History:
    """Record of one model's training."""

    reports: list[EpochReport]
    best_epoch: int
    interrupted: bool
    together: int = 1  # models that trained as one stacked model

    @property
    def seconds(self) -> float:
        """Seconds of all epochs, for all models that trained together."""
        return sum(report.seconds for report in self.reports)


def train(
    tasks: Sequence[Task],
    sink: Sink = silent,
    keep_interrupted: bool = False,
    checkpoint: Checkpoint | None = None,
) -> list[History]:
    """Train models, several at once where that is faster, and leave each with the weights of its best epoch."""
    return list(train_in_turn(tasks, sink, keep_interrupted=keep_interrupted, checkpoint=checkpoint))


def train_in_turn(
    tasks: Sequence[Task],
    sink: Sink = silent,
    engine: Engine | None = None,
    keep_interrupted: bool = False,
    checkpoint: Checkpoint | None = None,
) -> Iterator[History]:
    """Train models, stacked into one on a GPU; yield each history as soon as it is complete.

    A model trains the same alone or stacked: it has its own order of documents, dropout,
    batch norm, optimizer, best epoch and patience. Ctrl-C is raised, or with `keep_interrupted` ends training early,
    the best weights so far kept; models that it had not come to have no history then. One model alone goes on from
    `checkpoint`, and is kept there after every epoch. The caller's random generators are left as they were. `engine`
    trains them, if one is there already.
    """
    check_together(tasks)
    if len(tasks) > 1 and engine is None and not _can_stack(tasks):
        yield from _one_by_one(tasks, sink, keep_interrupted)
        return
    engine = engine or find_engine(tasks)
    best = BestWeights(engine.network, engine.stacked)
    stoppings = [EarlyStopping(task.config.patience, task.config.keep == "last") for task in tasks]
    reports: list[list[EpochReport]] = [[] for _ in tasks]
    interrupted = False
    try:
        if checkpoint is not None:
            reports[0] += checkpoint.resume(engine, best, stoppings[0])
        for matched in _epochs(engine, tasks, stoppings, len(reports[0])):
            best.keep([report.model for report in matched if report.is_best])
            for report in matched:
                reports[report.model].append(report)
                sink(report)
            if checkpoint is not None:
                checkpoint.save(engine, best, stoppings[0], reports[0])
            if all(stopping.out_of_patience for stopping in stoppings):
                break
    except KeyboardInterrupt:
        if not keep_interrupted or not reports[0]:  # before the first epoch has ended there is nothing to keep
            raise
        interrupted = True
    finally:
        best.restore()
        engine.close()
    for own, stopping in zip(reports, stoppings, strict=True):
        yield History(own, stopping.epoch, interrupted, len(tasks))


def _one_by_one(tasks: Sequence[Task], sink: Sink, keep_interrupted: bool) -> Iterator[History]:
    before: Engine | None = None
    for number, task in enumerate(tasks):
        before = find_engine([task], before)
        try:
            (history,) = train_in_turn([task], _numbered(sink, number), before, keep_interrupted)
        except KeyboardInterrupt:
            if number and keep_interrupted:  # those before it are whole
                return
            raise
        yield history
        if history.interrupted:
            return


def _numbered(sink: Sink, model: int) -> Sink:
    return lambda report: sink(replace(report, model=model))


def _can_stack(tasks: Sequence[Task]) -> bool:
    """Return whether these models train as one stacked network: on a GPU, in recorded steps."""
    device = tasks[0].examples.documents.device
    return tasks[0].network.stackable and kernels.supports_static_batches(device)


def _epochs(
    engine: Engine, tasks: Sequence[Task], stoppings: Sequence[EarlyStopping], done: int
) -> Iterator[list[EpochReport]]:
    """Run the epochs after those that are done; give the reports of the models that have not run out of patience."""
    config = tasks[0].config
    if done >= config.max_epochs or all(stopping.out_of_patience for stopping in stoppings):
        return
    generators = [np.random.default_rng(task.config.seed) for task in tasks]
    sizes = [_sizes(task) for task in tasks]

    def orders() -> list[Batches]:
        return [
            shuffled_batches(len(task.examples), config.batch_size, generator, own)
            for task, generator, own in zip(tasks, generators, sizes, strict=True)
        ]

    for _ in range(done):
        orders()  # as they were drawn before
    engine.prepare(orders())
    for epoch in range(done + 1, config.max_epochs + 1):
        start = time.perf_counter()
        engine.set_learning_rate(config.rate_factor(epoch))
        engine.start()
        if epoch < config.max_epochs:
            engine.prepare(orders())  # while this epoch runs
        results = engine.finish()
        for task, result in zip(tasks, results, strict=True):
            check_finite(task, result, epoch)
        seconds = time.perf_counter() - start
        matched = []
        for model, (stopping, result) in enumerate(zip(stoppings, results, strict=True)):
            if not stopping.out_of_patience:
                is_best = stopping.offer(epoch, result.accuracy, result.loss)
                matched.append(report_of(epoch, config, result, seconds, is_best, model))
        yield matched


def report_of(
    epoch: int, config: TrainingConfig, result: Result, seconds: float, is_best: bool, model: int = 0
) -> EpochReport:
    """Build the report of an epoch."""
    numbers = result.train_loss, result.loss, result.accuracy, seconds
    return EpochReport(epoch, config.max_epochs, *numbers, is_best, model, result.watched_accuracy)


def check_finite(task: Task, result: Result, epoch: int) -> None:
    """Raise if the loss of an epoch is not finite."""
    if isfinite(result.train_loss) and isfinite(result.loss):
        return
    rate = task.config.learning_rate
    raise NotFinite(
        f"training diverged in epoch {epoch}: the loss is {result.train_loss}, on held-out documents {result.loss}. "
        f"Lower the learning rate (learning_rate is {rate:g}; try {rate / 10:g}); if that does not help, look for "
        "extreme numbers among the word vectors"
    )


def _sizes(task: Task) -> NDArray[np.int64] | None:
    examples = task.examples
    return examples.corpus.document_sizes(examples.documents).cpu().numpy() if task.config.by_length else None


def shuffled_batches(
    n: int, batch_size: int, generator: np.random.Generator, sizes: NDArray[np.int64] | None = None
) -> list[NDArray[np.int64]]:
    """Return rows 0 … n − 1 in a new random order, cut into batches.

    With `sizes`, rows are sorted by size within stretches of fifty batches, and the batches then shuffled: rows of a
    batch have about the same size, and still meet others every epoch.
    """
    order = generator.permutation(n)
    if sizes is not None:
        stretch = 50 * batch_size
        parts = [order[start : start + stretch] for start in range(0, n, stretch)]
        order = np.concatenate([part[np.argsort(sizes[part], kind="stable")] for part in parts])
    cuts = np.arange(batch_size, n, batch_size)
    if len(cuts) and n - cuts[-1] == 1:  # a last batch of one has no variance: it joins the one before
        cuts = cuts[:-1]
    batches = np.split(order, cuts)
    return batches if sizes is None else [batches[k] for k in generator.permutation(len(batches))]
