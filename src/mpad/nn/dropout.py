"""Dropout that is cheap on a CPU, and the same for a model whether it trains alone or among others."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mpad.nn import compiled
from mpad.nn.compiled.rows import Drop, Embed

if TYPE_CHECKING:
    from mpad.nn.kernels.noise import DeviceNoise

_64_BITS = (1 << 64) - 1
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


class Noise:
    """Where dropout masks come from: a function of (the model's seed, the step, the place, the element) alone.

    So masks do not depend on how many rows are padded, nor on which other models train at the same time.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        self._seeds, self.steps = seeds, [0] * len(seeds)

    def next_step(self, active: Sequence[bool]) -> None:
        """Draw afresh from now on, for the models that take the step."""
        self.steps = [step + takes for step, takes in zip(self.steps, active, strict=True)]

    def key(self, model: int, place: int) -> int:
        """What tells a model's step and a layer apart from all others: 64 bits."""
        seed = int(self._seeds[model]) * _GOLDEN + place * _SECOND + self.steps[model] * _FIRST
        return (seed ^ (seed >> 29)) & _64_BITS


def random_bytes(key: int, eights: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Eight bytes for each of some numbers, side by side: SplitMix64, as in native/rows.h."""
    z = np.uint64(key) + eights * np.uint64(_GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    return (z ^ (z >> np.uint64(31))).astype("<u8").view(np.uint8)


class Dropout(nn.Module):
    """y = x ⊙ mask / (1 − p), the mask 0 with probability p; any shape, the models first if there are several.

    torch draws a float for every element on one thread, which costs more than the products around it. Here one
    random 64-bit integer serves eight elements, so p is rounded to a multiple of 1/256.
    """

    def __init__(self, p: float, place: int = 0) -> None:
        super().__init__()
        self.p = p
        self.place = place  # tells the layers of a network apart
        self.noise: Noise | DeviceNoise | torch.Generator = Noise([0])
        self.rates: Sequence[float] = (p,)  # by model

    def forward(self, x: Tensor, model: int | None = None) -> Tensor:
        """Drop elements while training; at prediction give x itself. `model` says whose rows x are, of several."""
        if not self.training or not any(self.rates):
            return x
        if isinstance(self.noise, torch.Generator):
            kept = torch.empty_like(x).bernoulli_(1 - self.p, generator=self.noise)
            return x * kept.div_(1 - self.p)
        if not isinstance(self.noise, Noise):
            from mpad.nn.kernels.noise import Drop as OnGPU

            return OnGPU.apply(x, self.noise, self.place)  # type: ignore[no-untyped-call]
        if model is None and len(self.rates) > 1:
            return torch.stack([self(part, number) for number, part in enumerate(x.unbind())])
        key, dropped = self._drawn(self.noise, model or 0)
        if compiled.takes(x):
            return Drop.apply(x, key, dropped)  # type: ignore[no-untyped-call]
        eights = np.arange(-(-x.numel() // 8), dtype=np.uint64)
        return _masked(x, random_bytes(key, eights)[: x.numel()], dropped)

    def rows(self, table: Tensor, words: Tensor, model: int | None = None) -> Tensor:
        """These rows of a table, each once, dropped; a word's mask does not hang on the words beside it."""
        if not self.training or not any(self.rates) or not isinstance(self.noise, Noise):
            return self(table.index_select(0, words), model)
        key, dropped = self._drawn(self.noise, model or 0)
        if compiled.takes(table) and table.is_contiguous():
            return Embed.apply(table, words, key, dropped)  # type: ignore[no-untyped-call]
        width = table.shape[1]
        eights = np.arange(-(-width // 8), dtype=np.uint64)
        numbers = words.cpu().numpy().astype(np.uint64)[:, None] * np.uint64(len(eights)) + eights
        return _masked(table.index_select(0, words), random_bytes(key, numbers)[:, :width], dropped)

    def _drawn(self, noise: Noise, model: int) -> tuple[int, int]:
        return noise.key(model, self.place), min(round(self.rates[model] * 256), 255)

    def extra_repr(self) -> str:
        """Show p."""
        return f"p={self.p}"


def _masked(x: Tensor, drawn: NDArray[np.uint8], dropped: int) -> Tensor:
    kept = torch.from_numpy(np.ascontiguousarray(drawn >= dropped)).to(x.device).view(x.shape)
    return (x * kept).mul_(256 / (256 - dropped))
