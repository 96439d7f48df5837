"""The least time that a step could take on a GPU: bytes that must move, operations of products, launches."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

_VECTOR, _WIDTH, _STEPS = 300, 64, 2


@dataclass(frozen=True)
class Machine:
    """What this GPU was measured to do."""

    bandwidth: float  # bytes a second, reading and writing counted, of a copy
    products: float  # operations a second of a large TF32 product
    thin_products: float  # the same of stacked products at the network's shapes, which bytes hold back
    launch: float  # seconds that one more kernel adds to a recorded step


@dataclass(frozen=True)
class Floor:
    """The parts of a step's floor, in seconds."""

    bytes: float
    products: float
    thin_products: float  # for comparison
    launches: float
    n_launches: int

    @property
    def total(self) -> float:
        """Bytes and products can overlap; launches come on top."""
        return max(self.bytes, self.products) + self.launches

    def __str__(self) -> str:
        return (
            f"floor: bytes {1e6 * self.bytes:.0f} µs and products {1e6 * self.products:.0f} µs, which overlap "
            f"({1e6 * self.thin_products:.0f} µs at the rate of products as thin as the network's), and "
            f"{self.n_launches} launches {1e6 * self.launches:.0f} µs"
        )


def measure_machine() -> Machine:
    """Measure a copy of a gigabyte, stacked products, and a recorded chain of empty kernels."""
    source = torch.empty(1 << 28, device="cuda")
    target = torch.empty_like(source)
    copy = _seconds(lambda: target.copy_(source))
    torch.set_float32_matmul_precision("high")
    a, b = torch.randn(10, 2_816, _WIDTH, device="cuda"), torch.randn(10, _WIDTH, 3 * _WIDTH, device="cuda")
    thin = 2 * a.numel() * 3 * _WIDTH / _seconds(lambda: a @ b, times=50)
    large = torch.randn(8_192, 8_192, device="cuda")
    rate = 2 * 8_192**3 / _seconds(lambda: large @ large)
    torch.set_float32_matmul_precision("highest")
    tiny = torch.zeros(32, device="cuda")
    graph, n = torch.cuda.CUDAGraph(), 500
    with torch.cuda.graph(graph):
        for _ in range(n):
            tiny.add_(1.0)
    launch = _seconds(graph.replay) / n
    return Machine(2 * source.numel() * 4 / copy, rate, thin, launch)


def _seconds(work: Callable[[], object], times: int = 5) -> float:
    work()
    found = []
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(times):
            work()
        torch.cuda.synchronize()
        found.append((time.perf_counter() - start) / times)
    return statistics.median(found)


def step_floor(machine: Machine, authors: bool, models: int, rows: int, n_launches: int) -> Floor:
    """The floor of a training step of stacked models, d = 64, two rounds of messages, 300-wide fixed vectors.

    Bytes: what the forward pass must leave for the backward pass is written once and read once (messages sent, the
    inbox, messages heard, three gates, the aligned rows, the new state; in the authors' network two more), the
    gradients that cross between nodes likewise, word vectors are read twice, Adam reads four and writes three numbers
    a parameter. Products: each weight meets each row once forwards and twice backwards, the first once less.
    """
    d = _WIDTH
    kept = (8 + 2 * authors) * d
    per_row = 2 * _VECTOR + _STEPS * 2 * (kept + 2 * d)
    per_step = 8 + 2 * authors  # heard 1, gates 3 + 2 + 1, align 1; later steps send: 1; authors: enter and state
    weights = _STEPS * per_step * d * d + (d if authors else 2 * d) * _VECTOR
    moved = 4 * (rows * per_row + models * 7 * weights)
    operations = 2 * rows * (3 * (_STEPS * per_step - 1) * d * d + 2 * (d if authors else 2 * d) * _VECTOR)
    products = operations / machine.products, operations / machine.thin_products
    return Floor(moved / machine.bandwidth, *products, n_launches * machine.launch, n_launches)
