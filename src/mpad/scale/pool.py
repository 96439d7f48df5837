"""Batch prediction by processes of one machine; the file of a killed process is retried."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice

from mpad.scale.job import MAX_KILLS, Job, Outcome, Task


def score_files(job: Job, tasks: Sequence[Task], workers: int) -> Iterator[Outcome]:
    """Yield the outcome of each file as soon as it is done."""
    kills = dict.fromkeys(tasks, 0)  # per remaining file
    while kills:
        suspect = next((task for task, n in kills.items() if n > 1), None)  # retried alone, to be sure it is the cause
        work = _run_until_kill(job, list(kills) if suspect is None else [suspect], workers)
        while True:
            try:
                outcome = next(work)
            except StopIteration as end:
                interrupted: list[Task] = end.value
                break
            kills.pop(outcome.task)
            yield outcome
        for task in interrupted:
            kills[task] += 1
            if kills[task] == MAX_KILLS:
                del kills[task]
                yield task.give_up()


def _run_until_kill(job: Job, tasks: Sequence[Task], workers: int) -> Generator[Outcome, None, list[Task]]:
    """Yield outcomes until all files are done or a worker is killed; return the files that were in progress then."""
    threads = max(1, workers // len(tasks))  # per worker, if there are fewer files than workers
    workers = min(workers, len(tasks))
    queue, running = iter(tasks), dict[Future[Outcome], Task]()
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _set_up_worker, (threads,)) as pool:
        try:
            while True:
                for task in islice(queue, workers - len(running)):
                    running[pool.submit(job.score, task)] = task
                if not running:
                    return []
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    outcome = future.result()
                    del running[future]
                    yield outcome
        except BrokenProcessPool:
            return list(running.values())


def _set_up_worker(threads: int) -> None:
    """Limit the threads of a worker and make it exit with its parent process."""
    from threadpoolctl import threadpool_limits

    os.environ["OMP_NUM_THREADS"] = str(threads)
    threadpool_limits(threads)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
