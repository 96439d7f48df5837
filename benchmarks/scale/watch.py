"""A command, its processes and its machine watched: seconds, CPU seconds, and how many cores others used meanwhile."""

import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.processes import sample

_EVERY = 0.5  # seconds
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Watched:
    """What a command took."""

    seconds: float
    cpu: float  # of all processes that it started
    taken: list[tuple[float, float]] = field(default_factory=list)  # from when on others used how many cores
    load: float = 0.0  # of the machine, a minute's mean when it began

    @property
    def others(self) -> float:
        """Cores that others used, on average."""
        ends = [*[start for start, _ in self.taken[1:]], self.seconds]
        area = sum(cores * (end - start) for (start, cores), end in zip(self.taken, ends, strict=True))
        return area / self.seconds if self.seconds else 0.0


def watch(command: Sequence[object], environment: Mapping[str, str] | None = None) -> Watched:
    """Run a command; an error if it fails."""
    load, waited = os.getloadavg()[0], _waited_for()
    taken: list[tuple[float, float]] = []
    ours: dict[int, float] = {}
    with tempfile.TemporaryFile("w+") as said:
        began, machine = time.perf_counter(), _busy()
        process = subprocess.Popen(
            list(map(str, command)), stdout=said, stderr=said, env={**os.environ, **(environment or {})}
        )
        ours[process.pid] = 0.0
        since, before = 0.0, 0.0
        while not _wait(process, _EVERY):  # after its end nobody can tell what it used last from what others did
            now = time.perf_counter() - began
            sample(ours)
            after, own = _busy(), sum(ours.values())
            used = ((after - machine) - (own - before)) / max(now - since, 1e-9)
            taken.append((round(since, 2), round(max(0.0, used), 2)))
            since, before, machine = now, own, after
        seconds = time.perf_counter() - began
        if process.returncode:
            said.seek(0)
            raise RuntimeError(f"{' '.join(map(str, command))}: {said.read()[-2000:]}")
    # what ends between two looks is in neither sum; processes that nobody waited for are in the first alone
    return Watched(seconds, max(sum(ours.values()), _waited_for() - waited), taken or [(0.0, 0.0)], load)


def _waited_for() -> float:
    """CPU seconds of all processes below this one that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _busy() -> float:
    """CPU seconds of the machine so far in which a core was not idle; what the hypervisor took counts as busy."""
    fields = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
    user, nice, system, _, _, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) / _TICKS
