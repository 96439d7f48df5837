"""Memory that the kernels of a training step share and the next step reuses."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from mpad.kernels.cpu import one_step, release_workspace


class StepMemory:
    """The memory of one training run; concurrent runs have one each."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._accumulators = None
        if device.type == "cuda":
            from mpad.kernels.cuda.accumulators import Accumulators

            self._accumulators = Accumulators()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Let kernels share memory inside this context; their results must not outlive it."""
        with one_step() if self._accumulators is None else self._accumulators.cleared(self._device):
            yield

    def release(self) -> None:
        """Free the memory."""
        if self._accumulators is None:
            release_workspace()
