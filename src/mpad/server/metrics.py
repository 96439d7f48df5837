"""What a server counts, in Prometheus' text format; with several workers, the sum of all. Never a text of a user.

The labels of these metrics are paths of ours, statuses, names of models and classes: a fixed number of them.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from mpad.server.models import Counted, Served

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # variable that names the folder through which workers share their numbers
CONTENT_TYPE = CONTENT_TYPE_LATEST
CONNECTION = "(connection)"  # stands for a path where a request was refused before it was there
_SECONDS = 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30
_DOCUMENTS = 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000
_MODEL = "mpad_model_info"
disable_created_metrics()  # type: ignore[no-untyped-call] # a line a series that no dashboard shows


class Metrics:
    """The counters of one process, and the page that shows those of all."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        made: dict[str, Any] = {"registry": registry}
        live: dict[str, Any] = {"registry": registry, "multiprocess_mode": "livesum"}
        self._requests = Counter("mpad_requests", "Requests, by endpoint and status.", ["endpoint", "status"], **made)
        self._seconds = Histogram(
            "mpad_request_seconds",
            "From a request's headers to its answer.",
            ["endpoint"],
            buckets=_SECONDS,
            **made,
        )
        self._documents = Histogram(
            "mpad_batch_documents", "Documents answered in one pass.", ["model"], buckets=_DOCUMENTS, **made
        )
        self._words = Counter("mpad_words", "Words of documents to predict.", ["model"], **made)
        self._unknown = Counter("mpad_unknown_words", "Those that are not in its vocabulary.", ["model"], **made)
        self._labels = Counter("mpad_labels", "Predicted labels.", ["model", "label"], **made)
        named = ["model", "kind", "version", "digest"]
        self._models = Gauge(_MODEL, "Workers that answer by this model folder.", named, **live)
        self._memory = Gauge("mpad_memory_bytes", "Memory; shared pages count in part as 'pss'.", ["kind"], **live)

    def request(self, endpoint: str, status: int, seconds: float | None = None) -> None:
        """Count a request."""
        self._requests.labels(endpoint, status).inc()
        if seconds is not None:
            self._seconds.labels(endpoint).observe(seconds)

    def batch(self, model: str, documents: int, counted: Counted) -> None:
        """Count a pass over some documents."""
        self._documents.labels(model).observe(documents)
        self._words.labels(model).inc(counted.words)
        self._unknown.labels(model).inc(counted.unknown)
        for label, times in counted.labels.items():
            self._labels.labels(model, label).inc(times)

    def model(self, model: Served, there: bool) -> None:
        """Note that this process answers by a model, or no longer does."""
        self._models.labels(model.name, model.kind, model.version, model.digest).set(there)

    def measure(self) -> None:
        """Note how much memory this process takes."""
        for kind, size in memory().items():
            self._memory.labels(kind).set(size)

    async def measured(self) -> None:
        """The same, for whoever waits between two times."""
        self.measure()

    def page(self) -> bytes:
        """The numbers of all workers."""
        self.measure()
        return generate_latest(self)

    def collect(self) -> Iterable[Any]:
        """Every metric, without models that no worker has any longer."""
        if FOLDER in os.environ:
            collected = MultiProcessCollector(None).collect()  # type: ignore[no-untyped-call]
        else:
            collected = self._registry.collect()
        for metric in collected:
            if metric.name == _MODEL:
                metric.samples = [sample for sample in metric.samples if sample.value]
            yield metric


def memory(pid: int | str = "self") -> dict[str, int]:
    """Bytes of a process that are in memory: 'rss', and 'pss', where a page of n processes counts one n-th.

    Empty where the system does not tell.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return {}
    sizes = {name: int(rest.split()[0]) << 10 for name, _, rest in (line.partition(":") for line in lines)}
    return {"rss": sizes["Rss"], "pss": sizes["Pss"]}
