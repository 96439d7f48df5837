"""Batch prediction by Ray Data, on an existing cluster or on one started for the job."""

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

_MAX_KILLS = 3  # workers killed while predicting a file before it is skipped; Ray itself retries forever
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
        for row in files.map_batches(score, batch_size=1, num_cpus=1, concurrency=concurrency).iter_rows():
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
    started, ended = not ray.is_initialized(), threading.Event()
    try:
        if started:
            _check_reachable(address)
            ray.init(address, logging_level=logging.CRITICAL, log_to_driver=False, **own)
        threading.Thread(target=_watch, args=(address, ended), daemon=True).start()
        with _report_cluster_loss(address):
            yield ray
    except (ConnectionError, ray.exceptions.RayError) as error:
        message = " ".join(str(error).split())[:200] or type(error).__name__
        raise EngineError(f"Ray, {address}: {message}; finished files are kept, run this again") from None
    finally:
        ended.set()
        if started:
            ray.shutdown()


@contextmanager
def _report_cluster_loss(address: str) -> Iterator[None]:
    """Start a process that reports a lost cluster, because Ray then kills this process without a message.

    The reporter waits until the pipe from this process closes, then checks whether the cluster is still reachable.
    """
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdecimal():  # a local cluster ends with this process
        yield
        return
    command = [sys.executable, "-c", _REPORTER, host.strip("[]"), port, _loss_message(address)]
    watcher = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        yield
    finally:
        assert watcher.stdin is not None
        with suppress(OSError):
            watcher.stdin.write(b"done")
            watcher.stdin.close()
        watcher.wait()


_REPORTER = """
import socket, sys
if sys.stdin.read() != "done":
    try:
        socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).close()
    except OSError:
        sys.stderr.write(sys.argv[3])
"""


def _loss_message(address: str) -> str:
    return f"mpad: Ray, {address}: the cluster is gone; finished files are kept, run this again\n"


def _check_reachable(address: str) -> None:
    """Raise ConnectionError if nothing listens at the address; Ray itself would wait for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdecimal():
        return  # "local" and "auto"
    try:
        socket.create_connection((host.strip("[]"), int(port)), _TIMEOUT).close()
    except OSError as error:
        raise ConnectionError(f"no cluster answers there ({error.strerror or error})") from None


def _watch(address: str, ended: threading.Event) -> None:
    """Exit with a one-line message once the cluster is lost; Ray takes a minute and prints a page of logs.

    An exception would not do: the main thread waits inside Ray's own code.
    """
    failed = 0
    while failed < _MAX_FAILURES and not ended.wait(_TIMEOUT / _MAX_FAILURES):
        try:
            _check_reachable(address)
            failed = 0
        except ConnectionError:
            failed += 1
    if not ended.is_set():
        if not address.rpartition(":")[2].isdecimal():  # otherwise the reporter prints it
            sys.stderr.write(_loss_message(address))
            sys.stderr.flush()
        os._exit(1)


class _FileScorer:
    """Callable for Ray Data that predicts the file of each row; each Ray process loads the model once."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        outcomes = [
            self._score(Task(Path(source), Path(out)))
            for source, out in zip(batch["source"], batch["out"], strict=True)
        ]
        return {
            "source": [str(outcome.task.source) for outcome in outcomes],
            "rows": [outcome.rows for outcome in outcomes],
            "error": [outcome.error or "" for outcome in outcomes],
            "fatal": [outcome.fatal for outcome in outcomes],
        }

    def _score(self, task: Task) -> Outcome:
        if self._job.is_done(task):  # by a worker that was killed later
            return Outcome(task, count_rows(task.out))
        if len(temporary_files(task.out.parent, task.out.name)) >= _MAX_KILLS:
            message = f"{task.source}: its worker was killed {_MAX_KILLS} times; is there enough memory?"
            return Outcome(task, error=message)
        return self._job.score(task)
