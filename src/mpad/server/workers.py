"""One process that serves, or several on one socket, which share the memory of a model's tables."""

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
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
from mpad.server.limits import Limits
from mpad.server.metrics import FOLDER
from mpad.server.protocol import LimitedConfig
from mpad.server.reload import hangup_reloads
from mpad.text.printable import printable

_HUNG = 10  # seconds in which a worker answers its parent; beyond that it is replaced


@dataclass(frozen=True)
class Settings:
    """What is served, and how; it is sent to every worker."""

    models: Sequence[str]  # NAME=FOLDER, or folders
    tokenizer: str | None = None
    examples: Sequence[tuple[str, str]] = ()  # labels and texts
    limits: Limits = Limits()
    key: str | None = None
    origins: Sequence[str] = ()
    hosts: Set[str] | None = None
    quiet: bool = False
    stop_within: int = 30  # seconds
    workers: int = 1
    reload_every: float = 0  # seconds; 0: never


def serve(settings: Settings, sockets: list[socket], announce: Callable[[], None]) -> None:
    """Serve on these sockets until a signal ends it; `announce` is called once all workers answer."""
    options: dict[str, Any] = {"log_level": "error", "access_log": False, "server_header": False, "ws": "none"}
    options["timeout_graceful_shutdown"] = settings.stop_within
    if settings.workers == 1:
        _Announcing(LimitedConfig(_load_app(settings), settings.limits, **options), announce).run(sockets)
        return
    with TemporaryDirectory(prefix="mpad-metrics-", dir=os.environ.get(FOLDER)) as folder:
        os.environ[FOLDER] = folder  # workers read it
        _supervise(settings, options, sockets, announce)


def _supervise(
    settings: Settings, options: dict[str, Any], sockets: list[socket], announce: Callable[[], None]
) -> None:
    options |= {"factory": True, "workers": settings.workers, "timeout_worker_healthcheck": _HUNG}
    _Workers(LimitedConfig(partial(_load_in_worker, settings), settings.limits, **options), sockets, announce).run()


class _Announcing(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: LimitedConfig, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self._announce()


class _Workers(Multiprocess):
    """uvicorn's supervisor: workers that end are replaced, and a signal ends them all."""

    def __init__(self, config: LimitedConfig, sockets: list[socket], announce: Callable[[], None]) -> None:
        super().__init__(config, sockets)
        self._announce = announce

    def init_processes(self) -> None:
        """Start the first worker alone: if it cannot load a model, that is said once, and there are no others."""
        wanted = self.processes_num
        for number in (1, wanted - 1):
            self.processes_num = number
            super().init_processes()
            if not self._answering():
                self.terminate_all()
                self.join_all()
                raise SystemExit(1)
        self.processes_num = wanted
        if not self.signal_queue:
            self._announce()

    def _answering(self) -> bool:
        """Wait until all workers answer; False if one has ended instead."""
        for process in self.processes:
            while not self.signal_queue and not process.is_ready(1):
                if not process.process.is_alive():
                    return False
                time.sleep(0.05)
        return True

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have ended, and say so."""
        before = list(self.processes)
        super().keep_subprocess_alive()
        for process in before:
            if process not in self.processes:
                self._gone(process)

    def handle_hup(self) -> None:
        """Have every worker look at its folders; or end, where a terminal was closed."""
        if not hangup_reloads():
            self.should_exit.set()
            return
        for process in self.processes:
            if process.pid is not None:
                os.kill(process.pid, signal.SIGHUP)

    def _gone(self, process: Process) -> None:
        mark_process_dead(process.pid)  # type: ignore[no-untyped-call] # its memory and models no longer count
        _say(f"worker {process.pid} has ended ({process.exitcode}) and is replaced")


def _load_app(settings: Settings) -> FastAPI:
    """Load the models, in the process that will answer."""
    from mpad.server.app import make_app  # a parent of workers needs none of it
    from mpad.server.middleware import to_stderr
    from mpad.server.models import load_all

    threadpool_limits(1)  # one thread answers; BLAS threads of its own would only fight over the cores
    shared = settings.workers > 1
    models = load_all(settings.models, settings.tokenizer, settings.examples, memory_mapped=shared)
    log = None if settings.quiet else to_stderr
    asked = settings.limits, settings.key, settings.origins, settings.hosts
    app = make_app(models, *asked, log, hard_stop=1.0, reload_every=settings.reload_every)
    gc.collect()
    gc.freeze()  # the models stay: no need to look through them at every collection
    return app


def _load_in_worker(settings: Settings) -> FastAPI:
    """The same in a process of its own, which ends with its parent; what cannot be loaded is one line."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    if hangup_reloads():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there are models to look at
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        return _load_app(settings)
    except (MPADError, OSError) as error:
        _say(str(error))
        sys.exit(1)


def _end_with(parent: Any) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _say(line: str) -> None:
    sys.stderr.write(f"mpad: {printable(' '.join(line.split()))}\n")
