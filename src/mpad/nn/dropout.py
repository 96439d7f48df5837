"""Dropout with masks that are the same on every device, and for a model alone or among others."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mpad import ops
from mpad.nn.linear import Uncalled
from mpad.ops.embedding import NO_DROPOUT, DropoutState


class DropoutCounter:
    """What the masks of a network are drawn from: seeds and steps of its models, on its device."""

    def __init__(self, seeds: Sequence[int], device: torch.device | str = "cpu") -> None:
        self.seeds = torch.tensor([int(seed) for seed in seeds], device=device)
        self.steps = torch.zeros_like(self.seeds)
        self.rows_before = 0  # of the same batch, in other processes: masks go on where theirs end

    def advance(self, active: Tensor) -> None:
        """Draw other masks from now on, for the models that take a step: (models,) 0 or 1."""
        self.steps += active


class Dropout(nn.Module):
    """y = x ⊙ mask / (1 − p), the mask 0 with probability p; any shape, the models first if there are several.

    torch draws a float for every element on one thread, which costs more than the products around it. Here one random
    64-bit integer serves eight elements, so p is rounded to a multiple of 1/256. `layer` tells the layers of a network
    apart.
    """

    thresholds: Tensor  # (models,) int64: 256 p

    def __init__(self, p: float, layer: int = 0) -> None:
        super().__init__()
        self.p, self.layer = p, layer
        self.counter: DropoutCounter | None = None
        self._calls = 0  # without a counter
        self.register_buffer("thresholds", torch.tensor([min(int(256 * p + 0.5), 255)]), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements while training; at prediction give x itself."""
        state = self.state()
        if state.seeds is None:
            return x
        before = 0 if self.counter is None else self.counter.rows_before
        if not before:
            return ops.dropout(x, state)
        return ops.dropout(torch.cat([x.new_zeros(before, *x.shape[1:]), x]), state)[before:]

    def state(self) -> DropoutState:
        """What an operator draws this layer's masks from; while nothing is dropped, nothing."""
        if not self.training or not self.p:
            return NO_DROPOUT
        counter = self.counter
        if counter is None:  # nobody counts the steps: every call has masks of its own
            counter = DropoutCounter([0] * self.thresholds.numel(), self.thresholds.device)
            counter.steps += self._calls
            self._calls += 1
        return DropoutState(counter.seeds, counter.steps, self.thresholds.view(-1), self.layer)

    def extra_repr(self) -> str:
        """Show p."""
        return f"p={self.p}"


class RowDropout(Uncalled, Dropout):
    """Dropout of word vectors, which `ops.embedding_linear` applies: within a batch a word has one mask."""


def set_dropout_counter(network: nn.Module, counter: DropoutCounter) -> None:
    """Let every dropout layer of a network draw its masks from this counter."""
    for module in network.modules():
        if isinstance(module, Dropout):
            module.counter = counter
