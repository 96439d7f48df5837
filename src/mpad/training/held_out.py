"""Evaluation of each model on its held-out documents."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from mpad.training.batches import BatchSource, Targets
from mpad.training.cuda_graph import Captured, Pool
from mpad.training.examples import Examples
from mpad.training.processes import Processes


class HeldOut:
    """Held-out documents of each model, and their evaluation."""

    def __init__(
        self, source: BatchSource, examples: Sequence[Examples], check: Any, pool: Pool | None, processes: Processes
    ) -> None:
        self._processes = processes
        self.source, self.targets = source, Targets(examples)
        self.sums = examples[0].weights.new_zeros(3, len(examples))  # loss, weight and right ones
        self._check = Captured(partial(check, self), lambda: [self.sums], pool)
        self.set(examples)

    def set(self, examples: Sequence[Examples]) -> None:
        """Replace the held-out documents."""
        self.targets.set(examples)
        self._counts = self._processes.sum(self.sums.new_tensor([len(part) for part in examples])).clamp(min=1)
        documents = self.source.held_out(self.targets.documents)
        self._steps = self.source.steps(documents, self._check.recordings)

    def evaluate(self) -> Tensor:
        """Return loss and accuracy of each model: (2, models)."""
        self.sums.zero_()
        for given, shape in self._steps:
            self._check(given, shape)
        loss, weight, right = self._processes.sum(self.sums.clone())
        return torch.stack([loss / weight.clamp(min=torch.finfo(weight.dtype).tiny), right / self._counts])
