"""Records of stages and of empty jobs → the numbers that the simulation takes; whole jobs are not looked at here."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from benchmarks.scale.simulation import Cluster, Step, Task


@dataclass(frozen=True)
class Documents:
    """What documents of a kind cost."""

    stages: dict[str, float]  # CPU seconds a document
    file: float  # CPU seconds of a file, beside its documents
    warm_up: float  # CPU seconds of a worker, once: what it works out when it first sees a word
    read: float  # bytes a document
    written: float
    text: float
    packing: dict[str, float]

    @property
    def cpu(self) -> float:
        """CPU seconds a document, all stages of scoring."""
        return sum(self.stages.values())

    def task(self, documents: float, files: int = 1) -> Task:
        """A block of some files."""
        return Task(self.cpu * documents + self.file * files, self.read * documents, self.written * documents)


@dataclass(frozen=True)
class Engine:
    """What an engine costs beside the files."""

    driver: tuple[Step, ...]
    worker: Step
    hand_out: Step
    leave: float
    end: Step

    def cluster(self, workers: int, cores: int, per_machine: int, documents: Documents, **options: Any) -> Cluster:
        """A cluster run by it, for such documents."""
        worker = replace(self.worker, cpu=self.worker.cpu + documents.warm_up)
        own: dict[str, Any] = {"driver": self.driver, "worker": worker, "hand_out": self.hand_out}
        return Cluster(workers, cores, per_machine, leave=self.leave, end=self.end, **own, **options)


@dataclass(frozen=True)
class Inputs:
    """Everything that was measured of the parts."""

    cores: int
    contention: float  # times the CPU seconds of one process alone: one on each core
    crowding: float  # times that again: two on each
    kinds: dict[str, Documents]
    engines: dict[str, Engine]
    cpu_slowdowns: list[float]  # of the same file scored again, by CPU seconds
    wall_slowdowns: list[float]  # and by the clock, on a machine that others use too


def inputs_of(record: dict[str, Any]) -> Inputs:
    """Medians over the rounds."""
    rounds, cores = record["rounds"], int(record["machine"]["cores"])
    kinds = {name: _documents([one["stages"][name] for one in rounds]) for name in rounds[0]["stages"]}
    engines = {name: _engine([one["empty"][name] for one in rounds], cores) for name in rounds[0]["empty"]}
    stages = [stage for one in rounds for stage in one["stages"].values()]
    return Inputs(
        cores=cores,
        contention=_factor(rounds, "beside", "alone"),
        crowding=_factor(rounds, "crowded", "beside"),
        kinds=kinds,
        engines=engines,
        cpu_slowdowns=_slowdowns([stage["whole_cpu"] for stage in stages]),
        wall_slowdowns=_slowdowns([stage["whole_seconds"] for stage in stages]),
    )


def _factor(rounds: Sequence[dict[str, Any]], slower: str, than: str) -> float:
    return max(1.0, median(one["contention"][slower] / one["contention"][than] for one in rounds))


def _documents(measured: Sequence[dict[str, Any]]) -> Documents:
    def middle(*names: str) -> float:
        values = measured
        for name in names:
            values = [one[name] for one in values]
        return float(median(values))  # type: ignore[type-var, arg-type]

    return Documents(
        stages={name: middle("stages", name) for name in measured[0]["stages"]},
        file=middle("one_file_cpu"),
        warm_up=middle("warm_up_cpu"),
        read=middle("read_bytes"),
        written=middle("written_bytes"),
        text=middle("text_bytes"),
        packing={name: middle("packing", name) for name in measured[0]["packing"]},
    )


def _slowdowns(groups: Sequence[Sequence[float]]) -> list[float]:
    """How many times its median each repetition took; scaled so that their mean is 1."""
    ratios = [value / median(group) for group in groups for value in group]
    mean = sum(ratios) / len(ratios)
    return [ratio / mean for ratio in ratios]


def _engine(jobs: Sequence[dict[str, Any]], cores: int) -> Engine:
    """The steps of a job over files that hold nothing, by one worker."""
    parts = [_parts(job, cores) for job in jobs]
    steps = {
        name: Step(
            median(part[name].cpu for part in parts),
            min(part[name].wait for part in parts),  # others on the machine only add to it
            tuple(map(median, zip(*(part[name].beside for part in parts), strict=False))),
        )
        for name in parts[0]
    }
    worker, hand_out, leave, end = (steps.pop(name) for name in ("worker", "hand_out", "leave", "end"))
    return Engine(tuple(steps.values()), worker, hand_out, leave.cpu, end)


def _parts(job: dict[str, Any], cores: int) -> dict[str, Step]:
    """One empty job: steps of the driver up to the worker's start, the worker's start, a task, the end."""

    def step(cpu: float, since: float, until: float, all_of_us: float = 0.0) -> Step:
        """What nobody computed for was waiting; computing took as long as the cores that others left made it."""
        free = max(0.1, cores - used_by_others(job, since - job["began"], until - job["began"]))
        return Step(cpu, max(0.0, until - since - max(cpu / min(1.0, free), all_of_us / free)))

    marks = {name: (when, cpu, tree) for name, when, cpu, tree in job["marks"]}
    notes = sorted(job["notes"], key=lambda note: note["began"][0])
    first, names = notes[0], [name for name in marks if name not in ("python", "first", "last", "ended")]
    own = {str(job["pid"]), str(first["pid"])}
    steps: dict[str, Step] = {}
    when, before = job["began"], 0.0
    for name in names:  # while the driver prepares, what its other processes compute is waited for
        ended, _, tree = marks[name]
        used = sum(tree.values())
        steps[name] = step(used - before, when, ended)
        when, before = ended, used
    # then it waits for the worker to be started, while helpers of the engine begin, too
    prepared, at_first, last = marks[names[-1]], marks["first"], marks["last"]
    file = median(note["ended"][1] - note["began"][1] for note in notes[1:])
    helpers = [used - prepared[2].get(pid, 0.0) for pid, used in at_first[2].items() if pid not in own]
    beside = tuple(sorted((used for used in helpers if used > 0.1), reverse=True))
    driver, worker = min(at_first[1] - prepared[1], first["born"] - when), first["ended"][1] - file
    launch = step(
        driver + worker, when, first["ended"][0] - file, sum(at_first[2].values()) - sum(prepared[2].values())
    )
    steps["launch"], steps["worker"] = Step(driver, launch.wait, beside), Step(worker)
    gaps = [later["began"][0] - note["ended"][0] for note, later in zip(notes, notes[1:], strict=False)]
    each = (last[1] - at_first[1]) / (len(notes) - 1)
    steps["hand_out"] = Step(each, max(0.0, median(gaps) - each))
    driver = marks["ended"][1] - last[1]
    steps["leave"] = Step(max(0.0, job["cpu"] - sum(last[2].values()) - driver))  # what ended processes used after it
    end = step(driver + steps["leave"].cpu, last[0], job["began"] + job["seconds"])
    steps["end"] = Step(driver, end.wait)
    return steps


def used_by_others(job: dict[str, Any], since: float = 0.0, until: float | None = None) -> float:
    """Cores that others used between two times of a job, or during all of it, on average."""
    until = job["seconds"] if until is None else until
    starts = [at for at, _ in job["taken"]]
    ends = [*starts[1:], job["seconds"]]
    pieces = [max(0.0, min(b, until) - max(a, since)) for a, b in zip(starts, ends, strict=True)]
    used = sum(piece * cores for piece, (_, cores) in zip(pieces, job["taken"], strict=True))
    return float(used / max(until - since, 1e-9))
