"""Model folders that change while they are served: the new one is loaded beside the old, and takes its place."""

import asyncio
import gc
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from mpad.errors import MPADError
from mpad.server.batching import Batcher
from mpad.server.errors import Problem
from mpad.server.models import Served, Stamp, stamp


class Swaps(Protocol):
    """Whoever answers by models, and can answer by another from the next request on."""

    batchers: dict[str, Batcher]

    def swap(self, model: Served) -> Batcher:
        """Answer by this model; what answered before under its name."""


class Reloader:
    """Looks at the folders of models, and replaces those that have changed; a folder that is damaged is refused."""

    def __init__(self, server: Swaps, log: Callable[[dict[str, Any]], None]) -> None:
        self._server, self._log = server, log
        self._refused: dict[str, Stamp] = {}  # name → state of the folder, which is not said again
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reload")

    async def look(self) -> None:
        """Replace every model whose folder has changed since it was loaded."""
        async with self._turn:
            for batcher in list(self._server.batchers.values()):
                now = stamp(batcher.model.folder)
                if now not in (batcher.model.stamp, self._refused.get(batcher.model.name)):
                    await self._reload(batcher.model, now)

    async def look_again(self) -> None:
        """The same, and at folders that were refused, too."""
        self._refused.clear()
        await self.look()

    async def _reload(self, old: Served, now: Stamp) -> None:
        loop, start = asyncio.get_running_loop(), time.perf_counter()
        line = {"at": round(time.time(), 3), "model": old.name}
        try:
            model = await loop.run_in_executor(self._thread, _loaded_again, old)
        except Exception as error:  # whatever is wrong with the new one, the old one answers
            self._refused[old.name] = now
            own = isinstance(error, (MPADError, OSError, Problem))
            said = str(error) if own else f"{type(error).__name__}: {error}"
            self._log({**line, "event": "refused", "error": " ".join(said.split())[:500]})
            return
        replaced = self._server.swap(model)
        taken = round(1000 * (time.perf_counter() - start))
        self._log({**line, "event": "reloaded", "version": model.version, "digest": model.digest, "ms": taken})
        await replaced.close()  # it answers what it has taken
        await loop.run_in_executor(self._thread, _clear)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def on_hangup(self) -> None:
        """Look whenever SIGHUP comes. Where a terminal may send it, by being closed, it ends the server as ever."""
        if threading.current_thread() is threading.main_thread() and hangup_reloads():
            loop, going = asyncio.get_running_loop(), set[asyncio.Task[None]]()

            def look() -> None:
                task = loop.create_task(self.look_again())
                going.add(task)  # a task that nobody holds may vanish
                task.add_done_callback(going.discard)

            signal.signal(signal.SIGHUP, lambda *_: loop.call_soon_threadsafe(look))


def hangup_reloads() -> bool:
    """Whether SIGHUP means to look at the folders: there is no terminal that could send it."""
    return hasattr(signal, "SIGHUP") and not (sys.stdin is not None and sys.stdin.isatty())


def _loaded_again(old: Served) -> Served:
    """The model that is now in the folder; every check of a folder is made, and it must answer."""
    model = old.loaded_again()
    model.predict(["", "a word"])
    return model


def _clear() -> None:
    """Let go of the old model, whose objects were taken out of the collector's sight."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
