"""How things are timed: whole pieces in turn, so that a noisy machine slows all of them alike."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds that a piece of work took: medians over the rounds, and each round's."""

    wall: float
    cpu: float
    walls: list[float]
    cpus: list[float]


ROUNDS = 5


def ratios(theirs: Sequence[float], ours: Sequence[float]) -> tuple[float, str]:
    """How many times as fast ours is: the median of the rounds' ratios, and the smallest and largest of them."""
    each = [a / b for a, b in zip(theirs, ours, strict=True)]
    return statistics.median(each), spread(each)


def spread(values: Sequence[float], form: str = ".2f") -> str:
    """The smallest and the largest of the rounds' values."""
    return f"{min(values):{form}} to {max(values):{form}}"


def product_rate(rows: int = 2_400, inner: int = 64, outer: int = 192) -> float:
    """Operations a second that this machine's matrix products reach at the network's shapes."""
    import torch

    a, b = torch.randn(rows, inner), torch.randn(inner, outer)
    for _ in range(20):
        a @ b
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(100):
            a @ b
        times.append((time.perf_counter() - start) / 100)
    return 2 * rows * inner * outer / statistics.median(times)


def in_turn(pieces: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, Timing]:
    """Time each piece once a round."""
    wall: dict[str, list[float]] = {name: [] for name in pieces}
    cpu: dict[str, list[float]] = {name: [] for name in pieces}
    for _ in range(rounds):
        for name, piece in pieces.items():
            start_wall, start_cpu = time.perf_counter(), time.process_time()
            piece()
            wall[name].append(time.perf_counter() - start_wall)
            cpu[name].append(time.process_time() - start_cpu)
    return {
        name: Timing(statistics.median(wall[name]), statistics.median(cpu[name]), wall[name], cpu[name])
        for name in pieces
    }
