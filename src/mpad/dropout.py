"""Dropout whose masks are a function of a seed, a step, a layer and an element: the same on every device.

torch draws one float per element on one thread, which costs more than the products around it. Here one 64-bit hash
(SplitMix64) serves eight elements, so rates are multiples of 1/256. `mpad.kernels` computes the same masks faster.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # SplitMix64's constants
ALL_BITS = (1 << 64) - 1


class DropoutCounter:
    """Seeds and steps that the masks of a network are drawn from, one of each per model, on the network's device."""

    def __init__(self, seeds: Sequence[int], device: torch.device | str = "cpu") -> None:
        self.seeds = torch.tensor([int(seed) for seed in seeds], device=device)
        self.steps = torch.zeros_like(self.seeds)
        self.rows_before = 0  # rows of the same batch that earlier processes hold

    def advance(self, active: Tensor) -> None:
        """Count a step for the models that take one: `active` (models,) holds 0 or 1."""
        self.steps += active


class Dropout(nn.Module):
    """y = x ⊙ mask / (1 − p), the mask 0 with probability p; any shape. `layer` numbers the layers of a network."""

    threshold: Tensor  # (1,) int64: 256 p

    def __init__(self, p: float, layer: int = 0) -> None:
        super().__init__()
        self.p, self.layer = p, layer
        self.counter: DropoutCounter | None = None
        self._calls = 0  # used as the step if there is no counter
        self.register_buffer("threshold", torch.tensor([min(int(256 * p + 0.5), 255)]), persistent=False)

    def forward(self, x: Tensor, rows: Tensor | None = None) -> Tensor:
        """Drop elements while training. Rows of x that have the same number in `rows` (n,) share one mask."""
        if not self.training or not self.p:
            return x
        counter = self.next_counter()
        if rows is not None:
            return x * self._mask(counter, rows, x.shape[-1]).to(x.dtype)
        before = counter.rows_before * x[:1].numel()
        n = before + x.numel()
        eights = torch.arange(-(-n // 8), device=x.device)
        return x * self._mask(counter, eights, 8).flatten()[before:n].view(x.shape).to(x.dtype)

    def next_counter(self) -> DropoutCounter:
        """Return the counter that this call draws its masks from."""
        if self.counter is not None:
            return self.counter
        counter = DropoutCounter([0] * self.threshold.numel(), self.threshold.device)
        counter.steps += self._calls
        self._calls += 1
        return counter

    def _mask(self, counter: DropoutCounter, rows: Tensor, width: int) -> Tensor:
        """Return 1 / (1 − p) where an element stays and 0 elsewhere: (n,) row numbers → (n, width)."""
        key = counter.seeds * _signed(GOLDEN) + counter.steps * _signed(FIRST) + _signed(self.layer * SECOND)
        key = key ^ _shift(key, 29)
        eights = torch.arange(-(-width // 8), device=rows.device)
        z = key + (rows[:, None].long() * len(eights) + eights) * _signed(GOLDEN)
        z = (z ^ _shift(z, 30)) * _signed(FIRST)
        z = (z ^ _shift(z, 27)) * _signed(SECOND)
        z = z ^ _shift(z, 31)
        drawn = (z[..., None] >> torch.arange(0, 64, 8, device=rows.device)) & 255  # (n, eights, 8)
        kept = drawn.flatten(1)[:, :width] >= self.threshold
        return kept * (256.0 / (256 - self.threshold))

    def extra_repr(self) -> str:
        """Show p."""
        return f"p={self.p}"


def set_dropout_counter(network: nn.Module, counter: DropoutCounter) -> None:
    """Let every dropout layer of a network draw its masks from this counter."""
    for module in network.modules():
        if isinstance(module, Dropout):
            module.counter = counter


def _signed(x: int) -> int:
    """Return the int64 with the lowest 64 bits of a number."""
    x &= ALL_BITS
    return x - (1 << 64) if x >> 63 else x


def _shift(x: Tensor, n: int) -> Tensor:
    """Shift unsigned numbers to the right."""
    return (x >> n) & ((1 << (64 - n)) - 1)
