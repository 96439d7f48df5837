"""Files scored by processes of one machine (multiprocessing, spawn); one that is killed costs no file."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice

from mpad.scale.job import Job, Outcome, Task

_DEATHS = 3  # of workers, at one file, before it is given up


def score_files(job: Job, tasks: Sequence[Task], workers: int) -> Iterator[Outcome]:
    """What came of each file, as they are done."""
    deaths = dict.fromkeys(tasks, 0)  # of the files that are left
    while deaths:
        suspect = next((task for task, n in deaths.items() if n > 1), None)  # alone, so that no other is blamed
        work = _round(job, list(deaths) if suspect is None else [suspect], workers)
        while True:
            try:
                outcome = next(work)
            except StopIteration as end:
                interrupted: list[Task] = end.value
                break
            deaths.pop(outcome.task)
            yield outcome
        for task in interrupted:
            deaths[task] += 1
            if deaths[task] == _DEATHS:
                del deaths[task]
                yield Outcome(
                    task, error=f"{task.source}: its worker was killed {_DEATHS} times; is there enough memory?"
                )


def _round(job: Job, tasks: Sequence[Task], workers: int) -> Generator[Outcome, None, list[Task]]:
    """Outcomes until all is done or a worker dies; which files were being scored then."""
    threads = max(1, workers // len(tasks))  # of each worker, where there are fewer files than workers
    workers = min(workers, len(tasks))
    queue, working = iter(tasks), dict[Future[Outcome], Task]()
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin, (threads,)) as pool:
        try:
            while True:
                for task in islice(queue, workers - len(working)):
                    working[pool.submit(job.score, task)] = task
                if not working:
                    return []
                for future in wait(working, return_when=FIRST_COMPLETED).done:
                    outcome = future.result()
                    del working[future]
                    yield outcome
        except BrokenProcessPool:
            return list(working.values())


def _begin(threads: int) -> None:
    """Set up a worker: no more threads than its share, and it ends with the process that started it."""
    from threadpoolctl import threadpool_limits

    os.environ["OMP_NUM_THREADS"] = str(threads)
    threadpool_limits(threads)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
