"""A cluster, event by event: a driver hands tasks to workers, which read, compute and write, straggle and fail.

The driver prepares, starts the workers and hands out one task after the other; each costs it CPU seconds. A worker
starts, then takes tasks: it reads the input over a link that all share, computes on its machine's cores (processor
sharing), writes. A worker that fails starts anew, and its task goes back to the front of the queue. What is read,
computed and written does not overlap here, which it partly does in truth.
"""

import math
import random
from bisect import insort
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from benchmarks.scale.shared import Clock, Shared, cores_speed, link_speed, replay


@dataclass(frozen=True)
class Step:
    """Something that a process does: CPU seconds on one core, then seconds of waiting, which need none."""

    cpu: float = 0.0
    wait: float = 0.0
    beside: tuple[float, ...] = ()  # CPU seconds of processes that begin with it, and that nobody waits for


@dataclass(frozen=True)
class Task:
    """A file, or a block of files."""

    cpu: float
    read: float = 0.0  # bytes
    write: float = 0.0
    arrives: float = 0.0  # seconds


@dataclass(frozen=True)
class Cluster:
    """Machines with workers, and what everything costs there."""

    workers: int
    cores: int  # of a machine
    per_machine: int  # workers on it
    contention: float = 1.0  # how much longer a core takes when all of its machine are busy
    crowding: float = 1.0  # and again when two processes share it
    driver: tuple[Step, ...] = ()  # before the workers are started
    worker: Step = Step()  # from its start to its first task
    hand_out: Step = Step()  # a task: the driver's CPU seconds, and how long it is under way
    leave: float = 0.0  # CPU seconds of each worker after the last task, which the driver waits for
    end: Step = Step()  # after that
    driver_apart: bool = False  # whether the driver has a machine of its own
    bandwidth: float = math.inf  # bytes a second that storage gives to all workers together
    link: float = math.inf  # and to one
    failures: float = 0.0  # of one worker, a second
    slowdowns: Sequence[float] = (1.0,)  # drawn for every attempt
    slow_workers: tuple[float, float] = (0.0, 1.0)  # a share of them, and how many times longer they take
    speculate: float = math.inf  # a second attempt for tasks that take this many times the median, when none wait
    taken: Sequence[tuple[float, float]] = ()  # from when on others take how many cores of every machine


@dataclass
class Result:
    """What came of a job."""

    seconds: float
    attempts: int
    failures: int
    completions: list[int]  # of each task
    latencies: list[float]  # from its arrival to its end
    cpu: float  # seconds, of everything
    wasted: float  # CPU seconds of attempts that failed or came second
    cores_used: float  # share of the workers' cores over all the time
    driver_used: float  # share of the time in which the driver was handing out
    storage_used: float  # share of the bandwidth; 0 where that is without limit
    tail: float  # seconds from handing out the last task to the end of all


@dataclass(eq=False)
class _Worker:
    number: int
    slow: float
    task: int | None = None  # None: idle
    up: bool = False
    life: int = 0  # raised when it fails: events of an earlier life do nothing
    job: tuple[Shared, int] | None = None
    began: float = 0.0
    spent: float = 0.0  # CPU seconds that this attempt needs


@dataclass
class _Simulation:
    cluster: Cluster
    tasks: Sequence[Task]
    random: random.Random
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        c, clock = self.cluster, self.clock
        n = -(-c.workers // c.per_machine)
        speed = cores_speed(c.cores, c.contention, c.crowding)
        self.machines = [Shared(clock, speed) for _ in range(n + c.driver_apart)]
        self.storage = Shared(clock, link_speed(c.bandwidth, c.link))
        for machine in self.machines if c.taken else ():
            replay(
                clock, machine, [(at, cores_speed(c.cores, c.contention, c.crowding, taken)) for at, taken in c.taken]
            )
        slow = round(c.slow_workers[0] * c.workers)
        self.workers = [_Worker(k, c.slow_workers[1] if k < slow else 1.0) for k in range(c.workers)]
        self.random.shuffle(self.workers)
        self.queue: deque[int] = deque()
        self.idle: deque[_Worker] = deque()
        self.running: dict[int, list[_Worker]] = {}
        self.durations: list[float] = []
        self.completions = [0] * len(self.tasks)
        self.latencies = [0.0] * len(self.tasks)
        self.left = len(self.tasks)
        self.attempts = self.failures = 0
        self.busy = self.wasted = 0.0
        self.handing = self.checking = False
        self.handed_last = 0.0

    # ── The driver ──

    def run(self) -> Result:
        c, clock = self.cluster, self.clock
        self._steps(c.driver, self._start)
        clock.run(lambda: not self.left)
        last, left = clock.now, set(range(c.workers)) if c.leave else set()
        for worker in self.workers:  # who is still at a second attempt is not waited for
            self._stop(worker)
            if c.leave:
                self._machine(worker).add(c.leave, partial(left.remove, worker.number))
        clock.run(lambda: not left)
        left.add(-1)
        self._steps((c.end,), left.clear)
        clock.run(lambda: not left)
        cpu = sum(machine.done for machine in self.machines)
        computed = sum(machine.done for machine in self.machines[: -(-c.workers // c.per_machine)])
        cores = c.workers * c.cores / c.per_machine * clock.now
        bytes_at_most = c.bandwidth * clock.now
        return Result(
            seconds=clock.now,
            attempts=self.attempts,
            failures=self.failures,
            completions=self.completions,
            latencies=self.latencies,
            cpu=cpu,
            wasted=self.wasted,
            cores_used=computed * c.contention / cores if cores else 0.0,
            driver_used=self.busy / max(last, 1e-12),
            storage_used=self.storage.done / bytes_at_most if math.isfinite(bytes_at_most) and bytes_at_most else 0.0,
            tail=last - self.handed_last,
        )

    @property
    def _driver_machine(self) -> Shared:
        return self.machines[-1 if self.cluster.driver_apart else 0]

    def _steps(self, steps: Sequence[Step], then: Callable[[], None]) -> None:
        """Do one after the other on the driver's machine."""
        if not steps:
            self.clock.after(0.0, then)
            return
        step, rest = steps[0], steps[1:]
        for other in step.beside:
            self._driver_machine.add(other, lambda: None)
        self._driver_machine.add(step.cpu, lambda: self.clock.after(step.wait, lambda: self._steps(rest, then)))

    def _start(self) -> None:
        for worker in self.workers:
            self._begin(worker)
        for number, task in enumerate(self.tasks):
            if task.arrives > self.clock.now:
                self.clock.at(task.arrives, partial(self._arrive, number))
            else:
                self.queue.append(number)

    def _arrive(self, number: int) -> None:
        self.queue.append(number)
        self._hand_out()

    def _hand_out(self) -> None:
        """Give the next task to an idle worker; the driver does that for one task at a time."""
        if self.handing or not self.idle or not self.left:
            return
        number = self.queue.popleft() if self.queue else self._second_attempt()
        if number is None:
            return
        if number not in self.running:
            self.handed_last = self.clock.now
        worker = self.idle.popleft()
        worker.task, worker.began, worker.spent = number, self.clock.now, 0.0
        self.running.setdefault(number, []).append(worker)
        self.attempts += 1
        self.handing = True
        began = self.clock.now
        self._driver_machine.add(self.cluster.hand_out.cpu, partial(self._handed, worker, worker.life, began))

    def _handed(self, worker: _Worker, life: int, began: float) -> None:
        self.handing = False
        self.busy += self.clock.now - began
        self._later(worker, life, self.cluster.hand_out.wait, self._read)
        self._hand_out()

    def _second_attempt(self) -> int | None:
        """A task that takes too long, where there is one; else look again when there could be."""
        if not math.isfinite(self.cluster.speculate) or not self.durations:
            return None
        alone = {number: at[0].began for number, at in self.running.items() if len(at) == 1}
        if not alone:
            return None
        number = min(alone, key=alone.__getitem__)
        long = self.cluster.speculate * self.durations[len(self.durations) // 2]
        if self.clock.now - alone[number] >= long - 1e-9:
            return number
        if not self.checking:
            self.checking = True
            self.clock.at(alone[number] + long, self._check)
        return None

    def _check(self) -> None:
        self.checking = False
        self._hand_out()

    # ── A worker ──

    def _machine(self, worker: _Worker) -> Shared:
        return self.machines[worker.number // self.cluster.per_machine]

    def _later(self, worker: _Worker, life: int, seconds: float, then: Callable[[_Worker], None]) -> None:
        def event() -> None:
            if worker.life == life:
                then(worker)

        self.clock.after(seconds, event)

    def _work(self, worker: _Worker, shared: Shared, work: float, then: Callable[[_Worker], None]) -> None:
        def event() -> None:
            worker.job = None
            then(worker)

        worker.job = shared, shared.add(work, event)

    def _begin(self, worker: _Worker) -> None:
        start = self.cluster.worker
        if self.cluster.failures:
            life_time = self.random.expovariate(self.cluster.failures)
            self._later(worker, worker.life, life_time, self._fail)
        ready: Callable[[_Worker], None] = lambda w: self._later(w, w.life, start.wait, self._up)  # noqa: E731
        self._work(worker, self._machine(worker), start.cpu * worker.slow, ready)

    def _up(self, worker: _Worker) -> None:
        worker.up = True
        self._rest(worker)

    def _rest(self, worker: _Worker) -> None:
        worker.task, worker.spent = None, 0.0
        self.idle.append(worker)
        self._hand_out()

    def _transfer(self, worker: _Worker, size: float, then: Callable[[_Worker], None]) -> None:
        if size and math.isfinite(min(self.cluster.bandwidth, self.cluster.link)):
            self._work(worker, self.storage, size, then)
        else:
            then(worker)

    def _read(self, worker: _Worker) -> None:
        self._transfer(worker, self._task(worker).read, self._compute)

    def _compute(self, worker: _Worker) -> None:
        slowdowns = self.cluster.slowdowns
        worker.spent = self._task(worker).cpu * worker.slow * slowdowns[self.random.randrange(len(slowdowns))]
        self._work(worker, self._machine(worker), worker.spent, self._write)

    def _write(self, worker: _Worker) -> None:
        self._transfer(worker, self._task(worker).write, self._done)

    def _task(self, worker: _Worker) -> Task:
        assert worker.task is not None
        return self.tasks[worker.task]

    def _done(self, worker: _Worker) -> None:
        assert worker.task is not None
        number = worker.task
        self.completions[number] += 1
        self.latencies[number] = self.clock.now - self.tasks[number].arrives
        insort(self.durations, self.clock.now - worker.began)
        self.left -= 1
        for other in self.running.pop(number):
            if other is not worker:  # the second attempt, or the first, is no longer needed
                self._stop(other)
                self._rest(other)
        self._rest(worker)

    def _stop(self, worker: _Worker) -> None:
        worker.life += 1
        if worker.job is not None:
            shared, job = worker.job
            left = shared.drop(job)
            worker.spent -= left if worker.spent and shared is not self.storage else 0.0
            worker.job = None
        self.wasted += worker.spent if worker.task is not None else 0.0
        worker.spent = 0.0
        if self.cluster.failures and worker.up:
            life_time = self.random.expovariate(self.cluster.failures)  # the rest of an exponential life
            self._later(worker, worker.life, life_time, self._fail)

    def _fail(self, worker: _Worker) -> None:
        self.failures += 1
        worker.up = False
        if worker.task is None:
            if worker in self.idle:
                self.idle.remove(worker)
        else:
            others = self.running[worker.task]
            others.remove(worker)
            if not others:
                del self.running[worker.task]
                self.queue.appendleft(worker.task)
        self._stop(worker)
        worker.task = None
        self._begin(worker)
        self._hand_out()


def simulate(cluster: Cluster, tasks: Sequence[Task], seed: int = 0) -> Result:
    """Run a job on a cluster."""
    return _Simulation(cluster, tasks, random.Random(seed)).run()
