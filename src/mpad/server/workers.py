"""Server processes: one, or several on one socket that share the memory of the model tables."""

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from socket import socket
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from fastapi import FastAPI
from prometheus_client.multiprocess import mark_process_dead
from threadpoolctl import threadpool_limits
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from mpad.errors import MPADError
from mpad.server.metrics import FOLDER
from mpad.server.protocol import LimitedConfig
from mpad.server.reload import reloads_on_sighup
from mpad.server.settings import Settings
from mpad.text.printable import printable

_HEALTH_TIMEOUT = 10  # seconds a worker may take to answer its parent before it is replaced


def serve(settings: Settings, sockets: list[socket], announce: Callable[[], None]) -> None:
    """Serve on these sockets until a signal arrives; call `announce` once all workers respond."""
    options: dict[str, Any] = {"log_level": "error", "access_log": False, "server_header": False, "ws": "none"}
    options["timeout_graceful_shutdown"] = settings.stop_within
    if settings.workers == 1:
        _AnnouncingServer(LimitedConfig(_load_app(settings), settings.limits, **options), announce).run(sockets)
        return
    with TemporaryDirectory(prefix="mpad-metrics-", dir=os.environ.get(FOLDER)) as folder:
        os.environ[FOLDER] = folder  # read by the workers
        options |= {"factory": True, "workers": settings.workers, "timeout_worker_healthcheck": _HEALTH_TIMEOUT}
        config = LimitedConfig(partial(_load_in_worker, settings), settings.limits, **options)
        _Supervisor(config, sockets, announce).run()


class _AnnouncingServer(uvicorn.Server):
    """Server that calls a function once it accepts requests."""

    def __init__(self, config: LimitedConfig, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Start, then announce it."""
        await super().startup(sockets)
        self._announce()


class _Supervisor(Multiprocess):
    """uvicorn supervisor that replaces ended workers and reports them."""

    def __init__(self, config: LimitedConfig, sockets: list[socket], announce: Callable[[], None]) -> None:
        super().__init__(config, sockets)
        self._announce = announce

    def init_processes(self) -> None:
        """Start the first worker alone, so that a model that cannot be loaded is reported once."""
        wanted = self.processes_num
        for number in (1, wanted - 1):
            self.processes_num = number
            super().init_processes()
            if not self._wait_until_ready():
                self.terminate_all()
                self.join_all()
                raise SystemExit(1)
        self.processes_num = wanted
        if not self.signal_queue:
            self._announce()

    def _wait_until_ready(self) -> bool:
        """Wait until all workers respond; return False if one ends instead."""
        for process in self.processes:
            while not self.signal_queue and not process.is_ready(1):
                if not process.process.is_alive():
                    return False
                time.sleep(0.05)
        return True

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have ended, and report them."""
        before = list(self.processes)
        super().keep_subprocess_alive()
        for process in before:
            if process not in self.processes:
                self._report_end(process)

    def handle_hup(self) -> None:
        """Have every worker check its folders; stop instead if a terminal was closed."""
        if not reloads_on_sighup():
            self.should_exit.set()
            return
        for process in self.processes:
            if process.pid is not None:
                os.kill(process.pid, signal.SIGHUP)

    def _report_end(self, process: Process) -> None:
        mark_process_dead(process.pid)  # type: ignore[no-untyped-call] # drops its memory and models from the metrics
        _print_line(f"worker {process.pid} has ended ({process.exitcode}) and is replaced")


def _load_app(settings: Settings) -> FastAPI:
    """Load the models in the process that serves them."""
    from mpad.server.app import make_app  # the supervisor of workers needs none of these
    from mpad.server.middleware import to_stderr
    from mpad.server.models import load_all

    threadpool_limits(1)  # each model predicts on one thread; BLAS threads would compete for the cores
    shared = settings.workers > 1
    models = load_all(settings.models, settings.tokenizer, settings.examples, memory_mapped=shared)
    app = make_app(models, settings, None if settings.quiet else to_stderr, hard_stop=1.0)
    gc.collect()
    gc.freeze()  # the models stay in memory: exclude them from garbage collection
    return app


def _load_in_worker(settings: Settings) -> FastAPI:
    """Load the app in a worker process, which ends with its parent and reports load errors in one line."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    if reloads_on_sighup():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # ignored until the models are loaded
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
    try:
        return _load_app(settings)
    except (MPADError, OSError) as error:
        _print_line(str(error))
        sys.exit(1)


def _exit_with_parent(parent: Any) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _print_line(line: str) -> None:
    sys.stderr.write(f"mpad: {printable(' '.join(line.split()))}\n")
