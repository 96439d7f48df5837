"""Training as a ladder of short steps: train → epochs → an engine's epoch → its steps."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from mpad import kernels
from mpad.config import TrainingConfig
from mpad.errors import NotFinite
from mpad.training.checkpoint import Checkpoint
from mpad.training.engine import Engine, find_engine
from mpad.training.processes import ALONE, Processes
from mpad.training.progress import EpochReport, Sink, silent
from mpad.training.stream import Window
from mpad.training.task import Batches, BestWeights, EarlyStopping, Examples, Result, Task, check_together

RunEpoch = Callable[[int], Sequence[Result]]  # the number of an epoch → each model's result


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

    A model trains the same alone or stacked: it has its own order of documents, dropout, batch norm, optimizer, best
    epoch and patience. Ctrl-C is raised, or with `keep_interrupted` ends training early and keeps the best weights so
    far; models that had not started have no history then. A single model resumes from `checkpoint` and is saved there
    after every epoch. The caller's random generators are left as they were. `engine` is used if it is given.
    """
    check_together(tasks)
    if len(tasks) > 1 and engine is None and not _can_stack(tasks):
        yield from _one_by_one(tasks, sink, keep_interrupted)
        return
    engine, orders = engine or find_engine(tasks), _epoch_orders(tasks)

    def run(epoch: int) -> Sequence[Result]:
        if not engine.prepared:  # the first epoch, or the first after those of a checkpoint
            engine.prepare(next(islice(orders, epoch - 1, None)))
        engine.pass_over()
        engine.evaluate()
        if epoch < tasks[0].config.max_epochs:  # cut the next batches while a GPU runs these
            engine.prepare(next(orders))
        return engine.finish()

    yield from _train(engine, tasks, run, sink, checkpoint, keep_interrupted)


def _one_by_one(tasks: Sequence[Task], sink: Sink, keep_interrupted: bool) -> Iterator[History]:
    before: Engine | None = None
    for number, task in enumerate(tasks):
        before = find_engine([task], before)
        try:
            (history,) = train_in_turn([task], _numbered(sink, number), before, keep_interrupted)
        except KeyboardInterrupt:
            if number and keep_interrupted:  # the models before it are complete
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


def train_stream(
    task: Task,
    windows: Callable[[int], Iterable[Window]],
    as_examples: Callable[[Window], Examples],
    sink: Sink = silent,
    checkpoint: Checkpoint | None = None,
    processes: Processes = ALONE,
    keep_interrupted: bool = False,
) -> History:
    """Train a model on the windows of each epoch, and leave it with the weights of its best epoch.

    With several processes each has its own windows, as many as the others, and a share of the held-out documents. All
    end with the same weights, and the first one writes the checkpoint.
    """
    engine = Engine([task], processes=processes)

    def run(epoch: int) -> Sequence[Result]:
        seen = 0
        for window in windows(epoch):
            engine.train_on_window(as_examples(window), window.batches, window.before)
            seen += window.documents
        engine.evaluate()
        return engine.finish(seen)

    (history,) = _train(engine, [task], run, sink, checkpoint, keep_interrupted and processes.size == 1, processes)
    if not history.reports:
        raise NotFinite("training stopped before the first epoch finished")
    return history


def _train(
    engine: Engine,
    tasks: Sequence[Task],
    run_epoch: RunEpoch,
    sink: Sink,
    checkpoint: Checkpoint | None,
    keep_interrupted: bool,
    processes: Processes = ALONE,
) -> Iterator[History]:
    """Run epochs until all models are out of patience; restore the best weights; yield the histories."""
    best, config = BestWeights(engine.network, engine.stacked), tasks[0].config
    stoppings = [EarlyStopping(task.config.patience, task.config.keep == "last") for task in tasks]
    reports: list[list[EpochReport]] = [[] for _ in tasks]
    interrupted = False
    try:
        if checkpoint is not None:
            reports[0] += checkpoint.resume(engine, best, stoppings[0])
        for epoch in range(len(reports[0]) + 1, config.max_epochs + 1):
            if not (active := [model for model, own in enumerate(stoppings) if not own.out_of_patience]):
                break
            start = time.perf_counter()
            engine.set_learning_rate(config.rate_factor(epoch))
            results = run_epoch(epoch)
            for task, result in zip(tasks, results, strict=True):
                check_finite(task, result, epoch)
            seconds = time.perf_counter() - start
            finished = [report_of(epoch, config, results[model], seconds, stoppings[model], model) for model in active]
            best.keep([report.model for report in finished if report.is_best])
            for report in finished:
                reports[report.model].append(report)
                sink(report)
            if checkpoint is not None and processes.first:
                checkpoint.save(engine, best, stoppings[0], reports[0])
            processes.wait()
    except KeyboardInterrupt:
        if not keep_interrupted or not reports[0]:  # before the first epoch has ended there is nothing to keep
            raise
        interrupted = True
    finally:
        best.restore()
        engine.close()
    for own, stopping in zip(reports, stoppings, strict=True):
        yield History(own, stopping.epoch, interrupted, len(tasks))


def report_of(
    epoch: int, config: TrainingConfig, result: Result, seconds: float, stopping: EarlyStopping, model: int
) -> EpochReport:
    """Offer a model's result to its early stopping, and build the report of the epoch."""
    is_best = stopping.offer(epoch, result.accuracy, result.loss)
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


def _epoch_orders(tasks: Sequence[Task]) -> Iterator[list[Batches]]:
    """Yield the batches of each epoch, for each model, without end."""
    generators = [np.random.default_rng(task.config.seed) for task in tasks]
    sizes = [
        task.examples.corpus.document_sizes(task.examples.documents).cpu().numpy() if task.config.by_length else None
        for task in tasks
    ]
    while True:
        yield [
            shuffled_batches(len(task.examples), task.config.batch_size, generator, own)
            for task, generator, own in zip(tasks, generators, sizes, strict=True)
        ]


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
