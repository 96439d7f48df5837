"""Files scored by Ray Data: on a cluster that is there, or on one that is started here and ended afterwards."""

import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mpad.errors import EngineError
from mpad.extras import require
from mpad.files.atomic import temporary_files
from mpad.scale.job import Job, Outcome, Task
from mpad.scale.shards import count_rows

_DEATHS = 3  # of workers, at one file, before it is given up: Ray itself would go on for ever
_BLOCKS = 4096  # at most: beyond that, files share one
_PATIENCE = 5.0  # seconds that a cluster has to answer
_FAILURES = 3  # one after the other, before it counts as gone


def score_files(job: Job, tasks: Sequence[Task], workers: int | None, address: str | None) -> Iterator[Outcome]:
    """What came of each file, as they are done. All nodes see the same folders by the same names."""
    with cluster(address, workers) as ray:
        there = max(1, int(ray.cluster_resources().get("CPU", 1)))
        left = {str(task.source): task for task in tasks}
        items = [{"source": str(task.source), "out": str(task.out)} for task in tasks]
        ray.data.DataContext.get_current().enable_progress_bars = False
        files = ray.data.from_items(items, override_num_blocks=min(len(items), _BLOCKS))
        score, concurrency = _Score(job), min(workers or there, there)
        for row in files.map_batches(score, batch_size=1, num_cpus=1, concurrency=concurrency).iter_rows():
            yield Outcome(left[row["source"]], int(row["rows"]), row["error"] or None, bool(row["fatal"]))


@contextmanager
def cluster(address: str | None, workers: int | None) -> Iterator[Any]:
    """Connect to a cluster, or start one here with that many cores; what goes wrong with it is one line."""
    ray = require("ray", extra="ray")
    require("ray.data", extra="ray")
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    own: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False} if address == "local" else {}
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    begun, ended = not ray.is_initialized(), threading.Event()
    try:
        if begun:
            _check_answers(address)
            ray.init(address, logging_level=logging.CRITICAL, log_to_driver=False, **own)
        threading.Thread(target=_watch, args=(address, ended), daemon=True).start()
        with _told_of_the_end(address):
            yield ray
    except (ConnectionError, ray.exceptions.RayError) as error:
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise EngineError(f"Ray, {address}: {said}; what is done stays, run this again") from None
    finally:
        ended.set()
        if begun:
            ray.shutdown()


@contextmanager
def _told_of_the_end(address: str) -> Iterator[None]:
    """Have another process print the line if Ray ends this one at once, as it does when its cluster dies.

    It waits for the end of a pipe that only this process holds, and prints if the cluster is gone by then.
    """
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdecimal():  # a cluster that is started here ends with this process
        yield
        return
    command = [sys.executable, "-c", _LAST_WORDS, host.strip("[]"), port, _gone(address)]
    watcher = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        yield
    finally:
        assert watcher.stdin is not None
        with suppress(OSError):
            watcher.stdin.write(b"done")
            watcher.stdin.close()
        watcher.wait()


_LAST_WORDS = """
import socket, sys
if sys.stdin.read() != "done":
    try:
        socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).close()
    except OSError:
        sys.stderr.write(sys.argv[3])
"""


def _gone(address: str) -> str:
    return f"mpad: Ray, {address}: the cluster is gone; what is done stays, run this again\n"


def _check_answers(address: str) -> None:
    """Ask whether anybody listens there: Ray itself would wait for many minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdecimal():
        return  # "local" and "auto"
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
    except OSError as error:
        raise ConnectionError(f"no cluster answers there ({error.strerror or error})") from None


def _watch(address: str, ended: threading.Event) -> None:
    """End the process in one line when nobody listens there any more; Ray does so after a minute, and a page of logs.

    The main thread waits in Ray's own code, where no exception reaches it.
    """
    failed = 0
    while failed < _FAILURES and not ended.wait(_PATIENCE / _FAILURES):
        try:
            _check_answers(address)
            failed = 0
        except ConnectionError:
            failed += 1
    if not ended.is_set():
        if not address.rpartition(":")[2].isdecimal():  # else another process prints it
            sys.stderr.write(_gone(address))
            sys.stderr.flush()
        os._exit(1)


class _Score:
    """Scores the file of each row; a process that Ray keeps reads the model once."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        outcomes = [
            self._outcome(Task(Path(source), Path(out)))
            for source, out in zip(batch["source"], batch["out"], strict=True)
        ]
        return {
            "source": [str(outcome.task.source) for outcome in outcomes],
            "rows": [outcome.rows for outcome in outcomes],
            "error": [outcome.error or "" for outcome in outcomes],
            "fatal": [outcome.fatal for outcome in outcomes],
        }

    def _outcome(self, task: Task) -> Outcome:
        if self._job.is_done(task):  # before this worker took over from another
            return Outcome(task, count_rows(task.out))
        if len(temporary_files(task.out.parent, task.out.name)) >= _DEATHS:
            said = f"{task.source}: its worker was killed {_DEATHS} times; is there enough memory?"
            return Outcome(task, error=said)
        return self._job.score(task)
