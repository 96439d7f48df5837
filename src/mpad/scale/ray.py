"""Batch prediction by Ray Data, on an existing cluster or on one started for the job."""

import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mpad.errors import EngineError
from mpad.extras import require
from mpad.files.atomic import temporary_files
from mpad.scale.job import MAX_KILLS, Job, Outcome, Task
from mpad.scale.shards import count_rows

_MAX_BLOCKS = 4096  # with more files, several share a block
_TIMEOUT = 5.0  # seconds for a cluster to answer
_MAX_FAILURES = 3  # consecutive, before the cluster counts as gone


def score_files(job: Job, tasks: Sequence[Task], workers: int | None, address: str | None) -> Iterator[Outcome]:
    """Yield the outcome of each file as soon as it is done; all nodes must see the files under the same paths."""
    with cluster(address, workers) as ray:
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        by_source = {str(task.source): task for task in tasks}
        items = [{"source": str(task.source), "out": str(task.out)} for task in tasks]
        ray.data.DataContext.get_current().enable_progress_bars = False
        files = ray.data.from_items(items, override_num_blocks=min(len(items), _MAX_BLOCKS))
        score, concurrency = _FileScorer(job), min(workers or cores, cores)
        for row in files.map(score, num_cpus=1, concurrency=concurrency).iter_rows():
            yield Outcome(by_source[row["source"]], int(row["rows"]), row["error"] or None, bool(row["fatal"]))


@contextmanager
def cluster(address: str | None, workers: int | None) -> Iterator[Any]:
    """Connect to a Ray cluster, or start a local one with `workers` cores; raise EngineError if it fails."""
    ray = require("ray", extra="ray")
    require("ray.data", extra="ray")
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    own: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False} if address == "local" else {}
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    started = not ray.is_initialized()
    try:
        if started:
            _check_reachable(address)
            ray.init(address, logging_level=logging.CRITICAL, log_to_driver=False, **own)
        with _exit_on_loss(address):
            yield ray
    except (ConnectionError, ray.exceptions.RayError) as error:
        message = " ".join(str(error).split())[:200] or type(error).__name__
        raise EngineError(f"Ray, {address}: {message}; finished files are kept, run this again") from None
    finally:
        if started:
            ray.shutdown()


@contextmanager
def _exit_on_loss(address: str) -> Iterator[None]:
    """Exit with a one-line message once the cluster is lost, on which Ray would spend a minute and a page of logs.

    A process of its own prints the message, because Ray may kill this one first: it waits until the pipe from here
    closes, and then checks whether the cluster is still reachable.
    """
    at = _host_and_port(address)
    if at is None:  # a local cluster ends with this process
        yield
        return
    message = f"mpad: Ray, {address}: the cluster is gone; finished files are kept, run this again\n"
    reporter = subprocess.Popen([sys.executable, "-c", _REPORTER, *map(str, at), message], stdin=subprocess.PIPE)
    ended = threading.Event()
    threading.Thread(target=_watch, args=(address, ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        reporter.communicate(b"done")


_REPORTER = """
import socket, sys
if sys.stdin.read() != "done":
    try:
        socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).close()
    except OSError:
        sys.stderr.write(sys.argv[3])
"""


def _host_and_port(address: str) -> tuple[str, int] | None:
    """Return where a cluster listens; None for "local" and "auto"."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    return (host.strip("[]"), int(port)) if port.isdecimal() else None


def _check_reachable(address: str) -> None:
    """Raise ConnectionError if nothing listens at the address; Ray itself would wait for minutes."""
    at = _host_and_port(address)
    try:
        if at is not None:
            socket.create_connection(at, _TIMEOUT).close()
    except OSError as error:
        raise ConnectionError(f"no cluster answers there ({error.strerror or error})") from None


def _watch(address: str, ended: threading.Event) -> None:
    """Exit once the cluster is lost; an exception would not do, as the main thread waits inside Ray's own code."""
    failed = 0
    while failed < _MAX_FAILURES and not ended.wait(_TIMEOUT / _MAX_FAILURES):
        try:
            _check_reachable(address)
            failed = 0
        except ConnectionError:
            failed += 1
    if not ended.is_set():
        os._exit(1)


class _FileScorer:
    """Callable for Ray Data that predicts the file of a row; each Ray process loads the model once."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __call__(self, row: dict[str, str]) -> dict[str, Any]:
        outcome = self._score(Task(Path(row["source"]), Path(row["out"])))
        facts = {"rows": outcome.rows, "error": outcome.error or "", "fatal": outcome.fatal}
        return {"source": row["source"], **facts}

    def _score(self, task: Task) -> Outcome:
        if self._job.is_done(task):  # by a worker that was killed later
            return Outcome(task, count_rows(task.out))
        if len(temporary_files(task.out.parent, task.out.name)) >= MAX_KILLS:  # Ray itself retries forever
            return task.give_up()
        return self._job.score(task)
