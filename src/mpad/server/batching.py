"""Requests that arrive together are answered together: one pass over the network for all that wait."""

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from mpad.server.errors import Problem
from mpad.server.metrics import Metrics
from mpad.server.models import Scores, Served

_TOGETHER = 512  # documents in one pass: more only makes the first of them wait
_SHORT = 30_000  # characters, a few milliseconds: handing a pass to the thread would cost more than it frees


@dataclass(frozen=True)
class _Waiting:
    texts: list[str]
    answer: "asyncio.Future[Scores]"


class Batcher:
    """Answers for one model, on a thread of its own. While one pass runs, the next gathers; nobody waits longer."""

    def __init__(self, model: Served, most_waiting: int, metrics: Metrics | None = None) -> None:
        self.model, self._most_waiting, self._metrics = model, most_waiting, metrics
        self._queue: deque[_Waiting] = deque()
        self._documents = 0  # in the queue
        self._running: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"predict-{model.name}")
        self.passes = 0

    async def predict(self, texts: list[str]) -> Scores:
        """Wait for the answer on these documents."""
        if self._documents + len(texts) > self._most_waiting:
            raise Problem(503, f"{self._documents:,} documents are waiting already: come back in a moment")
        waiting = _Waiting(texts, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self._documents += len(texts)
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await waiting.answer

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        alone: deque[_Waiting] = deque()
        try:
            while alone or self._queue:
                together = [self._alone(alone)] if alone else self._next()
                texts = [text for one in together for text in one.texts]
                self.passes += 1
                try:
                    if sum(map(len, texts)) <= _SHORT:
                        result = self.model.predict(texts)
                        await asyncio.sleep(0)  # let those in who came meanwhile
                    else:
                        result = await loop.run_in_executor(self._thread, self.model.predict, texts)
                except Exception as error:  # every one who waits is told, and the next pass runs
                    if len(together) > 1:  # one of them spoils it for all: each alone, then
                        self._documents += len(texts)
                        alone += together
                        continue
                    if not together[0].answer.done():
                        together[0].answer.set_exception(error)
                    continue
                if self._metrics is not None:
                    self._metrics.batch(self.model.name, len(texts), result.counted)
                first = 0
                for one in together:
                    last = first + len(one.texts)
                    own = None if result.probabilities is None else result.probabilities[first:last]
                    unknown = None if result.unknown is None else result.unknown[first:last]
                    if not one.answer.done():  # its client may have gone
                        one.answer.set_result(Scores(result.labels[first:last], own, unknown))
                    first = last
        finally:
            self._running = None

    def _alone(self, waiting: deque[_Waiting]) -> _Waiting:
        one = waiting.popleft()
        self._documents -= len(one.texts)
        return one

    def _next(self) -> list[_Waiting]:
        together = [self._queue.popleft()]
        n = len(together[0].texts)
        while self._queue and n + len(self._queue[0].texts) <= _TOGETHER:
            together.append(self._queue.popleft())
            n += len(together[-1].texts)
        self._documents -= n
        return together

    async def answers(self, seconds: float) -> bool:
        """Whether the model answers within a time, behind what runs on its thread; counted nowhere."""
        loop = asyncio.get_running_loop()
        try:
            await asyncio.wait_for(loop.run_in_executor(self._thread, self.model.predict, ["ready"]), seconds)
        except Exception:  # it is late, or broken
            return False
        return True

    async def close(self) -> None:
        """Answer all that wait, then end the thread."""
        while self._running is not None:
            await asyncio.sleep(0.01)
        self._thread.shutdown(wait=True)
