"""`python -m benchmarks.speed.serving_load`: one and several workers under load, and memory over a million requests.

100 clients for 60 s against 1 and 2 workers; memory of 1, 2 and 4; then a million requests, memory noted on the way.
Writes serving_load.json and serving_load.md. Clients keep their connections and send one document of 20 words after
another; they share the machine's cores with the server. Without `--model FOLDER` a model is trained on the embedded
corpus, with made-up vectors of 200,000 words, so that tables weigh what those of a real one do.
"""

import argparse
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

from benchmarks.results import HERE, check_clean, machine
from benchmarks.speed.serving import WORDS, Tally, load, make_requests, serving
from mpad.server.metrics import memory

_WARM = 5.0  # seconds of load before anything is measured
_VECTORS = 200_000, 300  # words, width


@dataclass(frozen=True)
class Memory:
    """Megabytes of a server: all its processes together, shared pages once; and what each worker has in memory."""

    pss: float
    worker_rss: list[float]
    worker_pss: list[float]


@dataclass(frozen=True)
class Load:
    """Some clients for a while."""

    workers: int
    clients: int
    seconds: float
    requests: int
    failed: int
    per_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    memory: Memory


@dataclass(frozen=True)
class Sample:
    """Memory after so many requests."""

    requests: int
    failed: int
    memory: Memory


def main() -> None:
    """Measure, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="folder of a fitted model")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--requests", type=int, default=1_000_000, help="over which memory is watched")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of serving_load.json and serving_load.md")
    asked = parser.parse_args()
    check_clean()
    with tempfile.TemporaryDirectory() as folder:
        model = asked.model or _train(Path(folder))
        size = sum(file.stat().st_size for file in Path(model).iterdir()) / 1e6
        requests = make_requests()
        loads = [_loaded(model, workers, requests, asked.clients, asked.seconds) for workers in (1, 2)]
        many = _loaded(model, 4, requests, asked.clients, _WARM)
        start = time.perf_counter()
        samples = _watched(model, requests, asked.clients, asked.requests)
        record = {
            "machine": machine(),
            "model_megabytes": round(size, 1),
            "load": [asdict(one) for one in loads],
            "memory": [{"workers": one.workers, **asdict(one.memory)} for one in (*loads, many)],
            "watched": {"workers": 2, "seconds": round(time.perf_counter() - start)},
            "samples": [asdict(sample) for sample in samples],
        }
    (asked.out / "serving_load.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (asked.out / "serving_load.md").write_text(markdown(record), encoding="utf-8")
    print(markdown(record))


def _loaded(model: str, workers: int, requests: list[bytes], clients: int, seconds: float) -> Load:
    with serving(model, "--workers", str(workers)) as (pid, port):
        _ask(port, requests, clients, _WARM)
        tally = _ask(port, requests, clients, seconds)
        p50, p95, p99 = (round(1000 * float(p), 1) for p in np.percentile(tally.latencies, [50, 95, 99]))
        n = len(tally.latencies)
        done = workers, clients, seconds, n, tally.failed, round(n / seconds)
        return Load(*done, p50, p95, p99, _memory(pid))


def _watched(model: str, requests: list[bytes], clients: int, wanted: int) -> list[Sample]:
    """Memory on the way to so many requests, noted every 10 seconds."""
    with serving(model, "--workers", "2") as (pid, port):
        _ask(port, requests, clients, _WARM)
        samples, total, failed = [Sample(0, 0, _memory(pid))], 0, 0
        while total < wanted:
            tally = _ask(port, requests, clients, 10.0)
            total, failed = total + len(tally.latencies), failed + tally.failed
            samples.append(Sample(total, failed, _memory(pid)))
            print(f"{total:,} requests, {failed} failed, {samples[-1].memory.pss:.1f} MB", flush=True)
        return samples


def _ask(port: int, requests: list[bytes], clients: int, seconds: float) -> Tally:
    tally: Tally = uvloop.run(load(port, requests, clients, seconds))
    return tally


def _memory(pid: int) -> Memory:
    """What a server's processes have in memory; one without workers is its own."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    workers = [child for child in children if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]
    every = [memory(one)["pss"] for one in (str(pid), *children)]
    each = [memory(worker) for worker in workers or [str(pid)]]
    rss, pss = ([round(one[kind] / 1e6, 1) for one in each] for kind in ("rss", "pss"))
    return Memory(round(sum(every) / 1e6, 1), rss, pss)


def _train(folder: Path) -> str:
    from mpad import MPADClassifier, load_dataset

    words, width = _VECTORS
    data = load_dataset("docstrings")
    texts = [*data.train.texts, *data.test.texts]
    known = sorted({word for text in texts for word in text.lower().split()})
    names = [*known, *(f"word{k}" for k in range(words - len(known)))]
    rows = np.random.default_rng(0).standard_normal((len(names), width), np.float32)
    np.savez(folder / "vectors.npz", words=np.array(names), vectors=rows)
    options: dict[str, Any] = {"max_epochs": 1, "random_state": 0, "device": "cpu", "extra_words": words}
    model = MPADClassifier(vectors=str(folder / "vectors.npz"), **options)
    model.fit(data.train.texts, data.train.labels).save(folder / "model")
    return str(folder / "model")


def markdown(record: dict[str, Any]) -> str:
    """The record as tables."""
    loads, samples = record["load"], record["samples"]
    facts = ", ".join(f"{name} {value}" for name, value in record["machine"].items() if name != "data")
    last, shown = samples[-1], [*samples[:: max(1, len(samples) // 10)]]
    shown += [last] if shown[-1] is not last else []
    parts = [
        "# A server under load\n",
        f"`python -m benchmarks.speed.serving_load`: {facts}.",
        "The clients share these cores with the server, so that a second worker has hardly one to itself.",
        f"Documents of {WORDS} words, one a request, over connections that are kept; a model folder of "
        f"{record['model_megabytes']:,.0f} MB.\n",
        "| workers | clients | requests | failed | a second | p50 | p95 | p99 |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
        *[
            f"| {one['workers']} | {one['clients']} | {one['requests']:,} in {one['seconds']:.0f} s | {one['failed']} "
            f"| {one['per_second']:,.0f} | {one['p50_ms']} ms | {one['p95_ms']} ms | {one['p99_ms']} ms |"
            for one in loads
        ],
        "\nMemory after that load, in MB. PSS counts a page that n processes share one n-th in each, so that it can be",
        "summed; with one worker nothing is mapped.\n",
        "| workers | PSS of all processes | PSS of each worker | RSS of each worker |",
        "|---:|---:|---|---|",
        *[
            f"| {one['workers']} | {one['pss']:,.0f} | {_numbers(one['worker_pss'])} | {_numbers(one['worker_rss'])} |"
            for one in record["memory"]
        ],
        f"\n{last['requests']:,} requests to {record['watched']['workers']} workers in "
        f"{record['watched']['seconds']:,} seconds, {last['failed']} failed; "
        f"memory in MB, after {_WARM:g} s of load that do not count:\n",
        "| requests | PSS of all processes | RSS of each worker |",
        "|---:|---:|---|",
        *[
            f"| {one['requests']:,} | {one['memory']['pss']:,.1f} | {_numbers(one['memory']['worker_rss'])} |"
            for one in shown
        ],
    ]
    return "\n".join(parts) + "\n"


def _numbers(values: list[float]) -> str:
    return ", ".join(f"{value:,.1f}" for value in values)


if __name__ == "__main__":
    main()
