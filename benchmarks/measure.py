"""How things are timed: whole pieces in turn, so that a noisy machine slows all of them alike."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds that a piece of work took: medians over the rounds, and each round's."""

    wall: float
    cpu: float
    walls: list[float]


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


def in_turn(pieces: dict[str, Callable[[], object]], rounds: int) -> dict[str, Timing]:
    """Time each piece once a round."""
    wall: dict[str, list[float]] = {name: [] for name in pieces}
    cpu: dict[str, list[float]] = {name: [] for name in pieces}
    for _ in range(rounds):
        for name, piece in pieces.items():
            start_wall, start_cpu = time.perf_counter(), time.process_time()
            piece()
            wall[name].append(time.perf_counter() - start_wall)
            cpu[name].append(time.process_time() - start_cpu)
    return {name: Timing(statistics.median(wall[name]), statistics.median(cpu[name]), wall[name]) for name in pieces}
