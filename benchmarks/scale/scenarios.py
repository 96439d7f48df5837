"""What the simulation says: of the jobs that were measured, to be compared; and of 10⁹ documents."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import mean, median
from typing import Any

from benchmarks.scale.inputs import Documents, Inputs, used_by_others
from benchmarks.scale.simulation import Cluster, Result, Task, simulate

CRITERION = 0.15  # of the measured time
DOCUMENTS = 10**9
_SEEDS = range(5)
_WINDOW = 2.0  # seconds over which the load of others is averaged
_BLOCKS = 4096  # of Ray Data at most: mpad.scale.ray


@dataclass(frozen=True)
class Assumptions:
    """Numbers that nobody measured here."""

    storage: float = 100e9 / 8  # bytes a second of shared storage, to all machines
    link: float = 10e9 / 8  # bytes a second of one machine; its workers share it
    machine: int = 20  # cores of a machine of a cluster, a worker on each
    failures: float = 1 / 86_400  # of a worker, a second: one a day
    slow_workers: tuple[float, float] = (0.01, 3.0)  # one worker of a hundred takes three times as long
    price: float = 0.04  # dollars of a core for an hour


ASSUMED = Assumptions()
FILES = {"short": 100_000, "long": 50_000}  # documents of a file: assumed, too


@dataclass(frozen=True)
class Check:
    """A job that was measured, and what was predicted of it."""

    engine: str
    kind: str
    workers: int
    measured: list[float]  # seconds, of each round
    others: list[float]  # cores that others used meanwhile
    predicted: list[float]  # with what others used
    undisturbed: float  # predicted with the machine to itself

    @property
    def error(self) -> float:
        """How far the prediction's median is off, as a share of the measured one."""
        return median(self.predicted) / median(self.measured) - 1

    @property
    def passed(self) -> bool:
        """Whether it may be believed."""
        return abs(self.error) <= CRITERION


def check(record: dict[str, Any], inputs: Inputs) -> list[Check]:
    """Predict every job that was measured; what it took is compared, never used."""
    points: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for one in record["rounds"]:
        for point in one["points"]:
            points.setdefault((point["engine"], point["kind"], point["workers"]), []).append(point)
    checks = []
    for (engine, kind, workers), own in points.items():
        tasks = [inputs.kinds[kind].task(size) for size in record["config"]["documents_of_files"][kind]]
        options: dict[str, Any] = {"slowdowns": inputs.cpu_slowdowns}
        options |= {"contention": inputs.contention, "crowding": inputs.crowding}
        cluster = inputs.engines[engine].cluster(workers, inputs.cores, workers, inputs.kinds[kind], **options)
        predicted = [_mean_seconds(replace(cluster, taken=_load(point)), tasks) for point in own]
        measured, others = [point["seconds"] for point in own], [used_by_others(point) for point in own]
        checks.append(Check(engine, kind, workers, measured, others, predicted, _mean_seconds(cluster, tasks)))
    return checks


def _mean_seconds(cluster: Cluster, tasks: Sequence[Task]) -> float:
    return mean(simulate(cluster, tasks, seed).seconds for seed in _SEEDS)


def _load(point: dict[str, Any]) -> tuple[tuple[float, float], ...]:
    """Cores that others used, in windows long enough for the clock's ticks; after the job's end, as on average."""
    starts = [_WINDOW * k for k in range(max(1, int(point["seconds"] / _WINDOW)))]
    ends = [*starts[1:], point["seconds"]]
    windows = [(start, used_by_others(point, start, end)) for start, end in zip(starts, ends, strict=True)]
    return (*windows, (point["seconds"], used_by_others(point)))


# ── 10⁹ documents ──


@dataclass(frozen=True)
class Scenario:
    """A cluster, and what came of the documents there."""

    name: str
    kind: str
    cluster: Cluster
    tasks: int
    result: Result
    bounds: dict[str, float]  # seconds that each resource would take were it alone

    @property
    def bottleneck(self) -> str:
        """What takes longest: a resource, or waiting for the last tasks."""
        seconds = {**self.bounds, "last tasks": self.result.tail}
        return max(seconds, key=seconds.__getitem__)

    @property
    def cores(self) -> int:
        """Cores of the workers' machines."""
        return self.cluster.cores * -(-self.cluster.workers // self.cluster.per_machine)

    @property
    def dollars(self) -> float:
        """What they cost."""
        return self.cores * self.result.seconds / 3600 * ASSUMED.price


def blocks(documents: Documents, kind: str, at_most: float = _BLOCKS, smaller: float = 1.0) -> list[Task]:
    """The documents as tasks: files, or, where there are too many, blocks of them, as even as whole files allow."""
    each = max(1, int(FILES[kind] / smaller))
    files = DOCUMENTS // each
    number = int(min(files, at_most))
    return [
        documents.task(each * n, n) for n in ((files * (k + 1)) // number - files * k // number for k in range(number))
    ]


def scenarios(inputs: Inputs) -> Iterator[Scenario]:
    """10⁹ documents of each kind on one machine and on clusters, and what would help."""
    for kind, documents in inputs.kinds.items():
        files = blocks(documents, kind, at_most=DOCUMENTS)
        for cores in (inputs.cores, 64):
            one = _on_pool(inputs, kind, cores)
            yield _scenario(f"one machine, {cores} cores, `--workers {cores}`", kind, one, files)
        if "ray" not in inputs.engines:
            continue
        tasks = blocks(documents, kind)
        yield _scenario("100 workers by Ray", kind, _on_ray(inputs, kind, 100), tasks)
        thousand = _on_ray(inputs, kind, 1000)
        yield _scenario("1,000 workers by Ray", kind, thousand, tasks)
        straggling = replace(thousand, slowdowns=inputs.wall_slowdowns, slow_workers=ASSUMED.slow_workers)
        yield _scenario("… with stragglers", kind, straggling, tasks)
        failing = replace(straggling, failures=ASSUMED.failures)
        yield _scenario("… and failures", kind, failing, tasks)
        yield _scenario("… and ten times as many", kind, replace(failing, failures=10 * ASSUMED.failures), tasks)
        yield _scenario("… failures, second attempts", kind, replace(failing, speculate=1.5), tasks)
        smaller = blocks(documents, kind, at_most=4 * _BLOCKS, smaller=4.0)
        yield _scenario("… failures, blocks a quarter as large", kind, failing, smaller)
        yield _scenario("… failures, both", kind, replace(failing, speculate=1.5), smaller)


def _on_pool(inputs: Inputs, kind: str, cores: int) -> Cluster:
    options: dict[str, Any] = {"contention": inputs.contention, "slowdowns": inputs.cpu_slowdowns}
    documents = inputs.kinds[kind]
    return inputs.engines["pool"].cluster(cores, cores, cores, documents, bandwidth=ASSUMED.link, **options)


def _on_ray(inputs: Inputs, kind: str, workers: int) -> Cluster:
    each = ASSUMED.machine
    options: dict[str, Any] = {
        "contention": inputs.contention,
        "slowdowns": inputs.cpu_slowdowns,
        "bandwidth": ASSUMED.storage,
        "link": ASSUMED.link / each,
        "driver_apart": True,
    }
    return inputs.engines["ray"].cluster(workers, each, each, inputs.kinds[kind], **options)


def _scenario(name: str, kind: str, cluster: Cluster, tasks: list[Task]) -> Scenario:
    """Simulate it with several seeds; the result is the one of the median time."""
    results = sorted((simulate(cluster, tasks, seed) for seed in _SEEDS), key=lambda one: one.seconds)
    return Scenario(name, kind, cluster, len(tasks), results[len(results) // 2], bounds(cluster, tasks))


def bounds(cluster: Cluster, tasks: Sequence[Task]) -> dict[str, float]:
    """Seconds that a job would take if only one resource were short."""
    seconds = sum(task.cpu for task in tasks) * cluster.contention
    moved = sum(task.read + task.write for task in tasks)
    start = sum(step.cpu + step.wait for step in (*cluster.driver, cluster.worker, cluster.end))
    return {
        "cores": seconds / cluster.workers,
        "scheduler": cluster.hand_out.cpu * len(tasks),
        "network": moved / min(cluster.bandwidth, cluster.link * cluster.workers),
        "start-up": start,
        "largest task": max(task.cpu for task in tasks) * cluster.contention,
    }


def limits(inputs: Inputs, kind: str) -> dict[str, float]:
    """Workers from which on Ray's start-up, its driver or the network takes longer than the cores."""
    tasks = blocks(inputs.kinds[kind], kind)
    one = bounds(replace(_on_ray(inputs, kind, 1), link=float("inf")), tasks)
    return {name: one["cores"] / one[name] for name in ("start-up", "scheduler", "network")} | {"blocks": len(tasks)}


@dataclass(frozen=True)
class Stream:
    """Files that arrive one by one all day."""

    workers: int
    load: float  # share of their time that workers would need
    mean: float  # seconds from a file's arrival to its answers
    p99: float


def streams(inputs: Inputs, kind: str, hours: float = 4.0) -> list[Stream]:
    """10⁹ documents a day, a file after the other at random times: how long answers take, by workers."""
    if "ray" not in inputs.engines:
        return []
    each = FILES[kind]
    rate = DOCUMENTS / each / 86_400
    task, draw, now = inputs.kinds[kind].task(each), random.Random(0), 0.0
    tasks = []
    while now < hours * 3600:
        now += draw.expovariate(rate)
        tasks.append(replace(task, arrives=now))
    busy = rate * task.cpu * inputs.contention
    result = []
    for workers in (int(busy) + 1, int(busy) + 2, 2 * int(busy) + 2):
        cluster = replace(_on_ray(inputs, kind, workers), slowdowns=inputs.wall_slowdowns)
        latencies = sorted(simulate(cluster, tasks).latencies)
        p99 = latencies[int(0.99 * len(latencies))]
        result.append(Stream(workers, busy / workers, mean(latencies), p99))
    return result
