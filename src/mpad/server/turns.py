"""Long work, one after another."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.requests import Request

from mpad.server.errors import Problem

_MOST_WAITING = 32


class Turns:
    """Long work, one after another on a thread of its own; those who have left by their turn are passed over."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._turn, self._waiting = asyncio.Lock(), 0

    async def run(self, request: Request, work: Callable[..., Any], *arguments: Any) -> Any:
        """Wait for one's turn, then for the work."""
        if self._waiting >= _MOST_WAITING:
            raise Problem(503, f"{self._waiting} requests of this kind are waiting already: come back in a moment")
        self._waiting += 1
        try:
            async with self._turn:
                if await request.is_disconnected():
                    raise Problem(499, "the client has left")
                return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Finish what was begun, nothing else."""
        self._thread.shutdown(wait=True, cancel_futures=True)
