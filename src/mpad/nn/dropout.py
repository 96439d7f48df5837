"""Dropout that is cheap on a CPU, and the same for a model whether it trains alone or among others."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from mpad.nn.kernels.noise import DeviceNoise

_MASK = (1 << 63) - 1


class Noise:
    """Where dropout masks come from: a function of (the model's seed, the step, the place, the element) alone.

    So masks do not depend on how many rows are padded, nor on which other models train at the same time.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        self._seeds, self._steps = seeds, [0] * len(seeds)
        self._generator = torch.Generator()

    def next_step(self, active: Sequence[bool]) -> None:
        """Draw afresh from now on, for the models that take the step."""
        self._steps = [step + takes for step, takes in zip(self._steps, active, strict=True)]

    def bytes(self, model: int, place: int, n: int) -> Tensor:
        """N random bytes, the first of them the same however many are asked for."""
        seed = self._seeds[model] * 0x9E3779B97F4A7C15 + place * 0x94D049BB133111EB
        seed += self._steps[model] * 0xBF58476D1CE4E5B9
        self._generator.manual_seed((seed ^ (seed >> 29)) & _MASK)
        eights = torch.randint(-(1 << 63), _MASK, (-(-n // 8),), dtype=torch.int64, generator=self._generator)
        return eights.view(torch.uint8)[:n]


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
            from mpad.nn.kernels.noise import Drop

            return Drop.apply(x, self.noise, self.place)  # type: ignore[no-untyped-call]
        if model is None and len(self.rates) > 1:
            return torch.stack([self(part, number) for number, part in enumerate(x.unbind())])
        dropped = min(round(self.rates[model or 0] * 256), 255)
        kept = self.noise.bytes(model or 0, self.place, x.numel()).to(x.device).view(x.shape) >= dropped
        return (x * kept).mul_(256 / (256 - dropped))

    def extra_repr(self) -> str:
        """Show p."""
        return f"p={self.p}"
