"""Tuning trials in parallel on Ray; the trial of a killed worker is retried."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mpad.errors import EngineError
from mpad.evaluate.tuning import Comparison, Runner, Scores
from mpad.scale.ray import cluster

_MAX_RETRIES = 3  # per trial


@contextmanager
def ray_runner(address: str | None, workers: int | None, gpu: bool = False) -> Iterator["RayRunner"]:
    """Return a runner on a cluster with one trial per worker; each trial gets a core, or a GPU."""
    with cluster(address, workers) as ray:
        available = int(ray.cluster_resources().get("GPU" if gpu else "CPU", 0))
        if not available:
            raise EngineError("this Ray cluster has no GPU; leave out --device, or name a cluster that has one")
        yield RayRunner(ray, min(workers or available, available), gpu)


class RayRunner(Runner):
    """Runner that submits trials to Ray."""

    def __init__(self, ray: Any, slots: int, gpu: bool) -> None:
        self._ray, self.slots, self._gpu = ray, slots, gpu
        self._data: Any = None  # documents, stored once in Ray's memory
        self._running: dict[Any, int] = {}

    def submit(self, number: int, comparison: Comparison, settings: dict[str, Any]) -> None:
        """Start a trial."""
        if self._data is None:
            self._data = self._ray.put(comparison)
        remote = self._ray.remote(num_cpus=1, num_gpus=int(self._gpu), max_retries=_MAX_RETRIES)(_score)
        self._running[remote.remote(self._data, settings)] = number

    def next_done(self) -> tuple[int, Scores]:
        """Wait for the next trial to finish."""
        done = self._ray.wait(list(self._running), num_returns=1)[0][0]
        number = self._running.pop(done)
        try:
            return number, self._ray.get(done)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None  # the same error as without Ray


def _score(comparison: Comparison, settings: dict[str, Any]) -> Scores:
    return comparison.score(settings)
