"""Training on a GPU without launch cost: a whole step is recorded once and replayed.

The corpus lives on the GPU. At the start of an epoch all its batches are cut out there, to planned sizes; a step
copies one of them into place and replays the recorded launches: gather, forward, backward, Adam. The host only
counts; it looks at numbers once an epoch.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpad.graph.batch import CorpusTensors
from mpad.graph.planned import PlannedBatch, PlanSize
from mpad.nn import kernels
from mpad.training.adam import FlatParameters
from mpad.training.eager import hear, load_network
from mpad.training.loss import document_losses, rightness, weighted_loss
from mpad.training.plans import Held, Known, Plans
from mpad.training.recording import Recorder, Recording
from mpad.training.stack import stack_models, unstack_models
from mpad.training.task import Batches, Result, Task


def can_replay(tasks: Sequence[Task]) -> bool:
    """Whether these models train on a GPU, over one corpus, and Triton is there."""
    if not tasks[0].network.stackable:
        return False
    held = [part for task in tasks for part in (task.examples, task.validation, task.watched) if part is not None]
    corpora = {id(part.corpus) for part in held}
    return len(corpora) == 1 and kernels.run_on(tasks[0].examples.documents)


class Replay:
    """Trains one model or several, always stacked, by replaying recorded steps."""

    stacked = True

    def __init__(self, tasks: Sequence[Task]) -> None:
        from mpad.nn.kernels.noise import DeviceNoise

        self._tasks = tasks
        corpus = tasks[0].examples.corpus
        assert isinstance(corpus, CorpusTensors)  # as can_replay has seen
        self._corpus = corpus
        self.network = stack_models([task.network for task in tasks])
        self._parameters = FlatParameters((p for p in self.network.parameters() if p.requires_grad), len(tasks))
        flat = self._parameters.flat
        self._moments = torch.zeros_like(flat), torch.zeros_like(flat)
        self._rates = flat.new_tensor([task.config.learning_rate for task in tasks])
        seeds = torch.tensor([task.config.seed for task in tasks], device=flat.device)
        self._noise = DeviceNoise(seeds, flat.new_tensor([task.network.config.dropout for task in tasks]))
        hear(self.network, self._noise)
        self._plans = Plans(self._corpus)
        self._recorder = Recorder()
        self._training = Known(self._corpus, [task.examples for task in tasks])
        checks = [task.examples if task.validation is None else task.validation for task in tasks]
        watched = [task.watched for task in tasks if task.watched is not None]
        self._held = Held(self._plans, [checks, watched] if watched else [checks])
        self._total = flat.new_zeros(len(tasks))
        self._counts = flat.new_tensor([len(task.examples) for task in tasks])
        self.prepared: list[tuple[Tensor, PlanSize]] = []
        self._cleared = 0  # numbers that a step's kernels add up into
        self.recorded: dict[PlanSize, Recording] = {}

    def prepare(self, orders: Sequence[Batches]) -> None:
        """Cut the next epoch's batches out of the corpus."""
        self.prepared = self._plans.cut(self._documents(orders), self.recorded)

    def start(self) -> None:
        """Launch every step of the epoch, and of its evaluation; the GPU runs behind."""
        self.network.train()
        self._total.zero_()
        for step, size in self.prepared:
            (self.recorded.get(size) or self._record(step, size)).replay(step)
        self.network.eval()
        self._found = torch.cat([(self._total / self._counts)[None], self._evaluate(self._held)])

    def finish(self) -> list[Result]:
        """Look at the numbers, for the first time in the epoch."""
        found = self._found.tolist()  # train loss, loss, accuracy [, watched loss, watched accuracy], by model
        watched = found[4] if len(found) > 3 else [None] * len(self._tasks)
        return [Result(*row) for row in zip(*found[:3], watched, strict=True)]

    def _documents(self, orders: Sequence[Batches]) -> NDArray[np.int64]:
        """Documents of each step and model: (steps, models, slots), -1 for none."""
        longest = max(len(order) for order in orders)
        slots = self._tasks[0].config.batch_size + 1  # a last batch of one joins the one before
        table = np.full((longest, len(orders), slots), -1)
        for model, (order, known) in enumerate(zip(orders, self._training.documents, strict=True)):
            for step, rows in enumerate(order):
                table[step, model, : len(rows)] = known[rows]
        return table

    def _record(self, example: Tensor, size: PlanSize) -> Recording:
        def step(place: Tensor) -> None:
            self._parameters.zero_grad()
            self._step(self._batch(place, size))

        averages = [buffer for name, buffer in self.network.named_buffers() if name != "vectors"]
        changed = (self._parameters.flat, *self._moments, self._noise.steps, self._total, *averages)
        self.recorded[size] = self._recorder.record(example, step, changed)
        return self.recorded[size]

    def _batch(self, place: Tensor, size: PlanSize) -> PlannedBatch:
        return self._plans.corpus.batch(place, len(self._tasks), size)

    def _step(self, batch: PlannedBatch) -> None:
        from mpad.nn.kernels.zeros import cleared

        with cleared(self._total.device, self._cleared) as pool:
            self._learn(batch)
        self._cleared = pool.used  # by the first run, which is never recorded

    def _learn(self, batch: PlannedBatch) -> None:
        from mpad.nn.kernels.adam import adam_step

        targets, weights, real = self._training.look_up(batch)
        counts = real.sum(1)
        active = (counts > 0).long()
        self._noise.advance(active)
        losses = weighted_loss(self.network(batch).logits, targets, weights)
        losses.sum().backward()  # each model's loss moves its own weights alone
        gradient = self._parameters.gradient()
        adam_step(self._parameters.flat, gradient, *self._moments, self._rates, self._noise.steps, active)
        self._total += losses.detach() * counts

    @torch.no_grad()
    def _evaluate(self, held: "Held") -> Tensor:
        """Loss and accuracy on each part of the held-out documents: (2 · parts, models)."""
        held.sums.zero_()

        def step(size: PlanSize, place: Tensor) -> None:
            batch = self._batch(place, size)
            targets, weights, _ = held.known.look_up(batch)
            logits = self.network(batch).logits
            each = torch.stack([document_losses(logits, targets) * weights, weights, rightness(logits, targets)])
            held.sums += torch.einsum("kmd,pmd->pkm", each, held.parts(batch))

        for planned, size in held.planned:
            if size not in held.recorded:
                held.recorded[size] = self._recorder.record(planned, partial(step, size), (held.sums,))
            held.recorded[size].replay(planned)
        losses, weight, right = held.sums.unbind(1)
        tiny = torch.finfo(weight.dtype).tiny
        return torch.stack([losses / weight.clamp(min=tiny), right / held.counts], dim=1).flatten(0, 1)

    def scale_learning_rate(self, factor: float) -> None:
        """Multiply the learning rates."""
        self._rates *= factor

    def state(self) -> dict[str, Tensor]:
        """Network, moments, rates and the dropout's counters."""
        found = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        return {**found, **self._counters}

    @property
    def _counters(self) -> dict[str, Tensor]:
        m, v = self._moments
        return {"adam.m": m, "adam.v": v, "adam.rates": self._rates, "dropout.steps": self._noise.steps}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Put back what `state` gave, where recorded steps look for it."""
        load_network(self.network, state)
        for name, own in self._counters.items():
            own.copy_(state[name])

    def close(self) -> None:
        """Give the models their weights."""
        self._parameters.release()
        unstack_models(self.network, [task.network for task in self._tasks])
        for task in self._tasks:
            task.network.eval()
