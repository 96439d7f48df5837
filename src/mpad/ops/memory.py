"""Memory that the operators of a training step share, and the next step uses again."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from mpad.ops.cpu import workspace


class StepMemory:
    """The memory of one training's steps; several trainings, in several threads, have one each."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._accumulators = None
        if device.type == "cuda":
            from mpad.ops.cuda.accumulators import Accumulators

            self._accumulators = Accumulators()

    @contextmanager
    def step(self) -> Iterator[None]:
        """While this lasts, operators share memory; what they give must not be held any longer."""
        with workspace.one_step() if self._accumulators is None else self._accumulators.cleared(self._device):
            yield

    def release(self) -> None:
        """Give the memory back."""
        if self._accumulators is None:
            workspace.release()
