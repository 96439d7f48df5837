"""Time, and what is shared in it: an event queue, and resources whose jobs all run at the same speed."""

import heapq
import math
from collections.abc import Callable, Sequence
from itertools import count


class Clock:
    """Events in the order of their times."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()

    def at(self, time: float, event: Callable[[], None]) -> None:
        """Let something happen at a time; of two at the same time, what was asked for first happens first."""
        heapq.heappush(self._events, (max(time, self.now), next(self._number), event))

    def after(self, seconds: float, event: Callable[[], None]) -> None:
        """Let something happen some seconds from now."""
        self.at(self.now + seconds, event)

    def run(self, until: Callable[[], bool]) -> None:
        """Let events happen until a condition holds."""
        while not until():
            if not self._events:
                raise RuntimeError("nothing is left that could happen, and the work is not done")
            self.now, _, event = heapq.heappop(self._events)
            event()


class Shared:
    """Processor sharing: every job runs at the speed that `speed` gives for so many jobs, in units of work a second.

    Jobs are kept by the progress at which they end, so that a change of speed touches none of them.
    """

    def __init__(self, clock: Clock, speed: Callable[[int], float]) -> None:
        self._clock, self._speed = clock, speed
        self._ends: list[tuple[float, int, Callable[[], None]]] = []
        self._open: dict[int, float] = {}  # progress at which each job that is not dropped ends
        self._number = count()
        self._progress, self._since, self._wake = 0.0, 0.0, 0
        self.done = 0.0  # units of work, of all jobs

    @property
    def jobs(self) -> int:
        """How many there are now."""
        return len(self._open)

    def add(self, work: float, then: Callable[[], None]) -> int:
        """Begin a job; what `drop` needs to end it early."""
        self._advance()
        number = next(self._number)
        self._open[number] = self._progress + work
        heapq.heappush(self._ends, (self._progress + work, number, then))
        self._plan()
        return number

    def drop(self, number: int) -> float:
        """End a job that is not done, and say how much of it was left; what follows it does not happen."""
        self._advance()
        left = self._open.pop(number) - self._progress
        self._plan()
        return max(0.0, left)

    def change(self, speed: Callable[[int], float]) -> None:
        """Go on at another speed."""
        self._advance()
        self._speed = speed
        self._plan()

    def _advance(self) -> None:
        if self.jobs:
            gained = self._speed(self.jobs) * (self._clock.now - self._since)
            self._progress += gained
            self.done += gained * self.jobs
        self._since = self._clock.now

    def _plan(self) -> None:
        while self._ends and self._ends[0][1] not in self._open:
            heapq.heappop(self._ends)
        self._wake += 1
        speed = self._speed(self.jobs) if self.jobs else 0.0
        if not speed:
            return
        wake = self._wake
        seconds = max(0.0, self._ends[0][0] - self._progress) / speed
        self._clock.after(seconds, lambda: self._finish(wake))

    def _finish(self, wake: int) -> None:
        if wake != self._wake:  # something changed meanwhile, and another event was asked for
            return
        self._advance()
        end, number, then = heapq.heappop(self._ends)
        self._progress = max(self._progress, end)  # rounding must not leave a rest
        del self._open[number]
        self._plan()
        then()


def cores_speed(
    cores: int, contention: float = 1.0, crowding: float = 1.0, taken: float = 0.0
) -> Callable[[int], float]:
    """Speed of a process on a machine, of which others take some cores.

    At most one core each. A core is slower by the factor `contention` when all are busy, by less when some are; and
    once more by `crowding` when two processes take turns on it, which then find its cache full of the other's.
    """

    def speed(jobs: int) -> float:
        left = max(0.02 * cores, cores - taken)
        busy = min(float(cores), jobs + taken)
        slow = 1 + (contention - 1) * max(0.0, busy - 1) / max(1, cores - 1)
        turns = 1 + (crowding - 1) * min(1.0, max(0.0, jobs / cores - 1))
        return min(1.0, left / jobs) / (slow * turns)

    return speed


def link_speed(all_together: float, each: float = math.inf) -> Callable[[int], float]:
    """Bytes a second of each of so many transfers."""
    return lambda jobs: min(each, all_together / jobs)


def replay(clock: Clock, shared: Shared, speeds: Sequence[tuple[float, Callable[[int], float]]]) -> None:
    """Change a resource's speed at the times given."""
    for time, speed in speeds:
        clock.at(time, lambda speed=speed: shared.change(speed))  # type: ignore[misc]
