"""Prometheus metrics of a server, summed over its workers.

Labels are known paths, statuses, models and classes: a bounded number, and never a user's text.
"""

import collections
import os
from collections.abc import Iterable, Sequence
from itertools import chain
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

from mpad.scale.text_model import Predictions
from mpad.server.models import LoadedModel

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # environment variable with the folder through which workers share metrics
CONTENT_TYPE = CONTENT_TYPE_LATEST
CONNECTION = "(connection)"  # endpoint label of a request refused before its path was read
_SECONDS = 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30
_DOCUMENTS = 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000
_MODEL_INFO = "mpad_model_info"
disable_created_metrics()  # type: ignore[no-untyped-call] # one extra line per series, which no dashboard shows


class Metrics:
    """Metrics of one process, and the page with those of all workers."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        named: dict[str, Any] = {"registry": registry}
        live: dict[str, Any] = {"registry": registry, "multiprocess_mode": "livesum"}
        self._requests = Counter("mpad_requests", "Requests, by endpoint and status.", ["endpoint", "status"], **named)
        self._seconds = Histogram(
            "mpad_request_seconds",
            "From a request's headers to its response.",
            ["endpoint"],
            buckets=_SECONDS,
            **named,
        )
        self._documents = Histogram(
            "mpad_batch_documents", "Documents per pass of the model.", ["model"], buckets=_DOCUMENTS, **named
        )
        self._words = Counter("mpad_words", "Words in predicted documents.", ["model"], **named)
        self._unknown = Counter("mpad_unknown_words", "Words that are not in the vocabulary.", ["model"], **named)
        self._labels = Counter("mpad_labels", "Predicted labels.", ["model", "label"], **named)
        self._confidence = Counter(
            "mpad_confidence", "Sum over documents of the probability of the most probable class.", ["model"], **named
        )
        fixed: dict[str, Any] = {"registry": registry, "multiprocess_mode": "max"}
        self._expected_labels = Gauge(
            "mpad_reference_label_share", "Share of a label in the reference documents.", ["model", "label"], **fixed
        )
        self._expected_unknown = Gauge(
            "mpad_reference_unknown_share", "Share of unknown words in the reference documents.", ["model"], **fixed
        )
        self._expected_confidence = Gauge(
            "mpad_reference_confidence", "Mean confidence in the reference documents.", ["model"], **fixed
        )
        labels = ["model", "kind", "version", "digest"]
        self._models = Gauge(_MODEL_INFO, "Workers that serve this model folder.", labels, **live)
        self._memory = Gauge("mpad_memory_bytes", "Memory; 'pss' divides shared pages.", ["kind"], **live)

    def count_request(self, endpoint: str, status: int, seconds: float | None = None) -> None:
        """Count a request."""
        self._requests.labels(endpoint, status).inc()
        if seconds is not None:
            self._seconds.labels(endpoint).observe(seconds)

    def count_batch(self, model: str, predictions: Predictions) -> None:
        """Count one pass of a model."""
        self._documents.labels(model).observe(len(predictions.labels))
        words, unknown = (0, 0) if predictions.words is None else predictions.words.sum(axis=0).tolist()
        self._words.labels(model).inc(words)
        self._unknown.labels(model).inc(unknown)
        for label, times in collections.Counter(chain.from_iterable(predictions.labels)).items():
            self._labels.labels(model, label).inc(times)
        if predictions.probabilities is not None:
            self._confidence.labels(model).inc(float(predictions.probabilities.max(axis=1).sum()))

    def set_reference(self, model: LoadedModel, texts: Sequence[str]) -> None:
        """Record what a model predicts for reference documents, to compare traffic with."""
        predictions = model.predict(texts)
        counts = collections.Counter(chain.from_iterable(predictions.labels))
        for label in model.classes:
            self._expected_labels.labels(model.name, label).set(counts[label] / len(texts))
        if predictions.words is not None:
            words, unknown = predictions.words.sum(axis=0).tolist()
            self._expected_unknown.labels(model.name).set(unknown / max(words, 1))
        if predictions.probabilities is not None:
            self._expected_confidence.labels(model.name).set(float(predictions.probabilities.max(axis=1).mean()))

    def set_model(self, model: LoadedModel, loaded: bool) -> None:
        """Record that this process serves a model, or no longer does."""
        self._models.labels(model.name, model.kind, model.version, model.digest).set(loaded)

    async def update_memory(self) -> None:
        """Record the memory of this process."""
        for kind, size in memory().items():
            self._memory.labels(kind).set(size)

    async def page(self) -> bytes:
        """Return the metrics of all workers as text."""
        await self.update_memory()
        return generate_latest(self)

    def collect(self) -> Iterable[Any]:
        """Yield every metric, without models that no worker serves any longer."""
        if FOLDER in os.environ:
            collected = MultiProcessCollector(None).collect()  # type: ignore[no-untyped-call]
        else:
            collected = self._registry.collect()
        for metric in collected:
            if metric.name == _MODEL_INFO:
                metric.samples = [sample for sample in metric.samples if sample.value]
            yield metric


def memory(pid: int | str = "self") -> dict[str, int]:
    """Return the resident memory of a process in bytes: 'rss', and 'pss', which divides shared pages among processes.

    Empty if the system has no /proc/PID/smaps_rollup.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return {}
    sizes = {name: int(rest.split()[0]) << 10 for name, _, rest in (line.partition(":") for line in lines)}
    return {"rss": sizes["Rss"], "pss": sizes["Pss"]}
