"""Reloading of model folders that change while they are served."""

import asyncio
import gc
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from mpad.errors import MPADError
from mpad.server.errors import HTTPProblem
from mpad.server.models import FolderState, LoadedModel, folder_state

if TYPE_CHECKING:
    from mpad.server.app import Api


class Reloader:
    """Watcher that replaces models whose folders have changed, unless the new folder is damaged."""

    def __init__(self, api: "Api", log: Callable[[dict[str, Any]], None]) -> None:
        self._api, self._log = api, log
        self._refused: dict[str, FolderState] = {}  # by name, so that each bad state is logged once
        self._lock = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reload")

    async def check_folders(self) -> None:
        """Replace every model whose folder has changed since it was loaded."""
        async with self._lock:
            for batcher in list(self._api.batchers.values()):
                now = folder_state(batcher.model.folder)
                if now not in (batcher.model.state, self._refused.get(batcher.model.name)):
                    await self._reload(batcher.model, now)

    async def recheck_folders(self) -> None:
        """Check all folders, including those already refused."""
        self._refused.clear()
        await self.check_folders()

    async def _reload(self, old: LoadedModel, now: FolderState) -> None:
        loop, start = asyncio.get_running_loop(), time.perf_counter()
        line = {"at": round(time.time(), 3), "model": old.name}
        try:
            model = await loop.run_in_executor(self._thread, _load_and_check, old)
        except Exception as error:  # whatever is wrong with the new model, the old one stays
            self._refused[old.name] = now
            expected = isinstance(error, (MPADError, OSError, HTTPProblem))
            message = str(error) if expected else f"{type(error).__name__}: {error}"
            self._log({**line, "event": "refused", "error": " ".join(message.split())[:500]})
            return
        replaced = self._api.swap(model)
        taken = round(1000 * (time.perf_counter() - start))
        self._log({**line, "event": "reloaded", "version": model.version, "digest": model.digest, "ms": taken})
        await replaced.close()  # finishes its queue
        await loop.run_in_executor(self._thread, _collect_garbage)

    def close(self) -> None:
        """Stop the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def handle_sighup(self) -> None:
        """Recheck the folders on SIGHUP, except under a terminal, where closing it ends the server."""
        if threading.current_thread() is threading.main_thread() and reloads_on_sighup():
            loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[None]]()

            def recheck() -> None:
                task = loop.create_task(self.recheck_folders())
                tasks.add(task)  # asyncio keeps only weak references to tasks
                task.add_done_callback(tasks.discard)

            signal.signal(signal.SIGHUP, lambda *_: loop.call_soon_threadsafe(recheck))


def reloads_on_sighup() -> bool:
    """Return whether SIGHUP means to check the folders: no terminal could have sent it."""
    return hasattr(signal, "SIGHUP") and not (sys.stdin is not None and sys.stdin.isatty())


def _load_and_check(old: LoadedModel) -> LoadedModel:
    """Load the model that is now in the folder, and check that it predicts."""
    model = old.reload()
    model.predict(["", "a word"])
    return model


def _collect_garbage() -> None:
    """Free the old model, which `gc.freeze` hid from the collector."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
