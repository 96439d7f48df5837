"""Batching of concurrent requests: one pass of the model predicts all queued documents."""

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from mpad.scale.text_model import Predictions
from mpad.server.errors import HTTPProblem
from mpad.server.metrics import Metrics
from mpad.server.models import LoadedModel

_MAX_BATCH = 512  # documents per pass; more would only delay the first of them
_INLINE = 30_000  # characters, a few milliseconds: starting a thread for fewer costs more than it gains


@dataclass(frozen=True)
class _QueuedRequest:
    texts: list[str]
    result: "asyncio.Future[Predictions]"


class Batcher:
    """Prediction queue of one model, with its own thread; requests that arrive during a pass form the next batch."""

    def __init__(self, model: LoadedModel, max_waiting: int, metrics: Metrics | None = None) -> None:
        self.model, self._max_waiting, self._metrics = model, max_waiting, metrics
        self._queue: deque[_QueuedRequest] = deque()
        self._n_queued = 0  # documents
        self._running: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"predict-{model.name}")
        self.passes = 0

    async def predict(self, texts: list[str]) -> Predictions:
        """Queue these documents and wait for their predictions."""
        if self._n_queued + len(texts) > self._max_waiting:
            raise HTTPProblem(503, f"{self._n_queued:,} documents are waiting already: come back in a moment")
        queued = _QueuedRequest(texts, asyncio.get_running_loop().create_future())
        self._queue.append(queued)
        self._n_queued += len(texts)
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await queued.result

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        retries: deque[_QueuedRequest] = deque()
        try:
            while retries or self._queue:
                batch = [retries.popleft()] if retries else self._next_batch()
                texts = [text for one in batch for text in one.texts]
                self._n_queued -= len(texts)
                self.passes += 1
                try:
                    if sum(map(len, texts)) <= _INLINE:
                        predictions = self.model.predict(texts)
                        await asyncio.sleep(0)  # let requests that arrived meanwhile join the queue
                    else:
                        predictions = await loop.run_in_executor(self._thread, self.model.predict, texts)
                except Exception as error:  # reported to every waiting client; the next pass still runs
                    if len(batch) > 1:  # one bad request fails the whole batch: retry each alone
                        self._n_queued += len(texts)
                        retries += batch
                    elif not batch[0].result.done():
                        batch[0].result.set_exception(error)
                    continue
                if self._metrics is not None:
                    self._metrics.count_batch(self.model.name, predictions)
                first = 0
                for one in batch:
                    last = first + len(one.texts)
                    if not one.result.done():  # a client that disconnected has cancelled it
                        one.result.set_result(predictions.slice(first, last))
                    first = last
        finally:
            self._running = None

    def _next_batch(self) -> list[_QueuedRequest]:
        batch = [self._queue.popleft()]
        n = len(batch[0].texts)
        while self._queue and n + len(self._queue[0].texts) <= _MAX_BATCH:
            batch.append(self._queue.popleft())
            n += len(batch[-1].texts)
        return batch

    async def is_responding(self, seconds: float) -> bool:
        """Return whether the model predicts a document within some seconds, without counting it in the metrics."""
        loop = asyncio.get_running_loop()
        try:
            await asyncio.wait_for(loop.run_in_executor(self._thread, self.model.predict, ["ready"]), seconds)
        except Exception:  # too slow, or broken
            return False
        return True

    async def close(self) -> None:
        """Finish all queued requests and stop the thread."""
        while self._running is not None:
            await asyncio.sleep(0.01)
        self._thread.shutdown(wait=True)
