"""What came of many cases, each tried in a process that may die of it."""

import multiprocessing
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SLOW = 5.0  # seconds
_GIVE_UP = 20.0


@dataclass
class Outcome:
    """What came of the cases of a target."""

    target: str
    cases: int = 0
    accepted: int = 0
    refused: int = 0
    crashes: int = 0  # any exception that is not mpad's own, or the end of the process
    hangs: int = 0
    executed: int = 0  # code that a case brought with it
    silent_changes: int = 0
    peak_megabytes: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)  # the first few, in words

    @property
    def clean(self) -> bool:
        """Whether every promise was kept."""
        return not (self.crashes or self.hangs or self.executed or self.silent_changes)


Case = Callable[[int], str]  # number → "accepted", "refused", "executed: …" or "silent change: …"; may raise or hang


class _Hang(Exception):
    pass


def _alarm(*_: Any) -> None:
    raise _Hang


def _work(make: Callable[[], Case], numbers: range, pipe: Any) -> None:
    case = make()
    signal.signal(signal.SIGALRM, _alarm)
    for number in numbers:
        pipe.send(("begin", number, ""))
        signal.setitimer(signal.ITIMER_REAL, SLOW)
        try:
            found = case(number)
        except _Hang:
            found = f"hang: over {SLOW:g} s"
        except BaseException as error:
            found = f"crash: {type(error).__name__}: {error} at {traceback.extract_tb(error.__traceback__)[-1]}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        pipe.send(("end", number, found))
    pipe.send(("peak", _peak_kilobytes(), ""))


def _peak_kilobytes() -> int:
    """Of this process alone: what getrusage says begins with its parent's."""
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])


def run(target: str, make: Callable[[], Case], cases: int) -> Outcome:
    """Try cases 0 … n − 1, in a process of their own; one that it dies of is a crash, and the rest go on in another."""
    outcome, start, first = Outcome(target), time.perf_counter(), 0
    context = multiprocessing.get_context("spawn")
    while first < cases:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(make, range(first, cases), theirs))
        process.start()
        theirs.close()
        first = _listen(outcome, ours, first, cases)
        if process.is_alive() and first < cases:
            process.kill()
        process.join()
    outcome.seconds = round(time.perf_counter() - start, 1)
    return outcome


def _listen(outcome: Outcome, pipe: Any, first: int, cases: int) -> int:
    """Count what the process says; the case to go on with."""
    number = first
    while True:
        if not pipe.poll(_GIVE_UP if number > first else 120):
            _count(outcome, number, "hang: it did not even notice the alarm")
            return number + 1
        try:
            kind, value, said = pipe.recv()
        except EOFError:
            if number >= cases:
                return cases
            _count(outcome, number, "crash: the process ended")
            return number + 1
        if kind == "end":
            _count(outcome, value, said)
            number = value + 1
        elif kind == "peak":
            outcome.peak_megabytes = max(outcome.peak_megabytes, value // 1024)
            return cases


def _count(outcome: Outcome, number: int, said: str) -> None:
    outcome.cases += 1
    word = said.partition(":")[0]
    if word in ("accepted", "refused"):
        setattr(outcome, word, getattr(outcome, word) + 1)
        return
    name = {"crash": "crashes", "hang": "hangs", "silent change": "silent_changes"}.get(word, word)
    setattr(outcome, name, getattr(outcome, name) + 1)
    if len(outcome.failures) < 20:
        outcome.failures.append(f"case {number}: {said[:500]}")


def as_record(outcome: Outcome) -> dict[str, Any]:
    """The outcome as JSON holds it."""
    return asdict(outcome)
