"""Training on documents that come in windows: the same engine, stopping and reports as on a corpus in memory."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mpad.errors import NotFinite
from mpad.training.checkpoint import Checkpoint
from mpad.training.engine import Engine
from mpad.training.loop import History, check_finite, report_of
from mpad.training.processes import ALONE, Processes
from mpad.training.progress import EpochReport, Sink, silent
from mpad.training.stopping import BestWeights, EarlyStopping
from mpad.training.task import Batches, Examples, Task


@dataclass(frozen=True)
class Lesson:
    """Documents in memory, and in which batches to learn from them."""

    examples: Examples
    batches: Batches
    rows_before: list[int]  # of each whole batch, that processes before this one have
    documents: int  # of all processes together


def train_stream(
    task: Task,
    lessons: Callable[[int], Iterable[Lesson]],
    sink: Sink = silent,
    checkpoint: Checkpoint | None = None,
    processes: Processes = ALONE,
    keep_interrupted: bool = False,
) -> History:
    """Train a model on the lessons of each epoch, and leave it with the weights of its best epoch.

    With several processes each has lessons of its own, as many as the others, and a share of the held-out documents;
    all end with the same weights, and the first keeps the checkpoint.
    """
    engine = Engine([task], processes=processes)
    best, config = BestWeights(engine.network, stacked=False), task.config
    stopping = EarlyStopping(config.patience, config.keep == "last")
    reports: list[EpochReport] = []
    interrupted = False
    try:
        if checkpoint is not None:
            reports += checkpoint.resume(engine, best, stopping)
        for epoch in range(len(reports) + 1, config.max_epochs + 1):
            if stopping.out_of_patience:
                break
            start, seen = time.perf_counter(), 0
            engine.set_learning_rate(config.rate_factor(epoch))
            engine.begin()
            for lesson in lessons(epoch):
                engine.learn_from(lesson.examples, lesson.batches, lesson.rows_before)
                seen += lesson.documents
            engine.evaluate()
            (result,) = engine.finish(seen)
            check_finite(task, result, epoch)
            is_best = stopping.offer(epoch, result.accuracy, result.loss)
            reports.append(report_of(epoch, config, result, time.perf_counter() - start, is_best))
            if is_best:
                best.keep([0])
            sink(reports[-1])
            if checkpoint is not None and processes.first:
                checkpoint.save(engine, best, stopping, reports)
            processes.wait() if processes.size > 1 else None
    except KeyboardInterrupt:
        if not keep_interrupted or not reports or processes.size > 1:
            raise
        interrupted = True
    finally:
        best.restore()
        engine.close()
    if not reports:
        raise NotFinite("training stopped before the first epoch finished")
    return History(reports, stopping.epoch, interrupted)
