"""Training on a GPU without launch cost: a whole step is recorded once and replayed.

The corpus lives on the GPU. At the start of an epoch all its batches are cut out there, to planned sizes; a step
copies one of them into place and replays the recorded launches: gather, forward, backward, Adam. The host only
counts; it looks at numbers once an epoch.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpad.graph.batch import CorpusTensors
from mpad.graph.planned import PlannedBatch, PlannedCorpus, PlanSize
from mpad.nn import kernels
from mpad.training.adam import FlatParameters
from mpad.training.eager import hear
from mpad.training.examples import Examples
from mpad.training.loss import document_losses, rightness, weighted_loss
from mpad.training.stack import stack_models, unstack_models
from mpad.training.task import Batches, Result, Task

_UNIT = 128  # rows; slabs are whole multiples, so that products can be cut evenly
_LOOSE = 1.25  # a recorded step serves batches down to this part of its size
_EVALUATED = 512  # documents evaluated together


def can_replay(tasks: Sequence[Task]) -> bool:
    """Whether these models train on a GPU, over one corpus, and Triton is there."""
    held = [part for task in tasks for part in (task.examples, task.validation, task.watched) if part is not None]
    corpora = {id(part.corpus) for part in held}
    return len(corpora) == 1 and kernels.run_on(tasks[0].examples.documents)


class Replay:
    """Trains one model or several, always stacked, by replaying recorded steps."""

    stacked = True

    def __init__(self, tasks: Sequence[Task]) -> None:
        from mpad.nn.kernels.noise import DeviceNoise

        self._tasks = tasks
        self._corpus = tasks[0].examples.corpus
        self.network = stack_models([task.network for task in tasks])
        self._parameters = FlatParameters((p for p in self.network.parameters() if p.requires_grad), len(tasks))
        flat = self._parameters.flat
        self._moments = torch.zeros_like(flat), torch.zeros_like(flat)
        self._rates = flat.new_tensor([task.config.learning_rate for task in tasks])
        seeds = torch.tensor([task.config.seed for task in tasks], device=flat.device)
        self._noise = DeviceNoise(seeds, flat.new_tensor([task.network.dropout.p for task in tasks]))
        hear(self.network, self._noise)
        self._plans = _Plans(self._corpus, len(tasks))
        self._training = [_Known(self._corpus, [task.examples for task in tasks])]
        checks = [task.examples if task.validation is None else task.validation for task in tasks]
        watched = [task.watched for task in tasks if task.watched is not None]
        self._held = [_Held(self._plans, part) for part in ([checks, watched] if watched else [checks])]
        self._total = flat.new_zeros(len(tasks))
        self._recorded: dict[PlanSize, _Recording] = {}

    def run(self, orders: Sequence[Batches]) -> list[Result]:
        """Pass once over each model's batches, then look at its held-out documents."""
        self.network.train()
        self._total.zero_()
        documents = self._documents(orders)
        for steps, size in self._plans.cut(documents, list(self._recorded)):
            recording = self._recorded.get(size) or self._record(steps, size)
            for number in range(len(steps)):
                recording.replay(steps[number])
        self.network.eval()
        found = [self._evaluate(held) for held in self._held]
        counts = torch.tensor([len(task.examples) for task in self._tasks], device=self._total.device)
        table = torch.stack([self._total / counts, *[column for part in found for column in part]]).tolist()
        return [Result(*row[:3], row[4] if len(row) > 3 else None) for row in zip(*table, strict=True)]

    def _documents(self, orders: Sequence[Batches]) -> NDArray[np.int64]:
        """Documents of each step and model: (steps, models, slots), -1 for none."""
        longest = max(len(order) for order in orders)
        slots = self._tasks[0].config.batch_size + 1  # a last batch of one joins the one before
        table = np.full((longest, len(orders), slots), -1)
        for model, (order, known) in enumerate(zip(orders, self._training[0].documents, strict=True)):
            for step, rows in enumerate(order):
                table[step, model, : len(rows)] = known[rows]
        return table

    def _record(self, steps: Tensor, size: PlanSize) -> "_Recording":
        def step(batch: PlannedBatch) -> None:
            self._parameters.zero_grad()
            self._step(batch)

        changed = (self._parameters.flat, *self._moments, self._noise.steps, self._total, *self.network.buffers())
        recording = _Recording(self._plans.corpus, steps[0], len(self._tasks), size, step, changed)
        self._recorded[size] = recording
        return recording

    def _step(self, batch: PlannedBatch) -> None:
        from mpad.nn.kernels.adam import adam_step

        targets, weights, real = self._training[0].look_up(batch)
        counts = real.sum(1)
        active = (counts > 0).long()
        self._noise.advance(active)
        losses = weighted_loss(self.network(batch).logits, targets, weights)
        losses.sum().backward()  # each model's loss moves its own weights alone
        gradient = self._parameters.gradient()
        adam_step(self._parameters.flat, gradient, *self._moments, self._rates, self._noise.steps, active)
        self._total += losses.detach() * counts

    @torch.no_grad()
    def _evaluate(self, held: "_Held") -> tuple[Tensor, Tensor]:
        """Loss and accuracy of each model: (models,) each."""
        held.sums.zero_()
        if held.recording is None:

            def step(batch: PlannedBatch) -> None:
                targets, weights, real = held.known.look_up(batch)
                logits = self.network(batch).logits
                losses = (document_losses(logits, targets) * weights).sum(1)
                right = (rightness(logits, targets) * real).sum(1)
                held.sums += torch.stack([losses, weights.sum(1), right, real.sum(1)])

            held.recording = _Recording(
                self._plans.corpus, held.steps[0], len(self._tasks), held.size, step, (held.sums,)
            )
        for number in range(len(held.steps)):
            held.recording.replay(held.steps[number])
        losses, weight, right, count = held.sums
        return losses / weight.clamp(min=torch.finfo(weight.dtype).tiny), right / count

    def scale_learning_rate(self, factor: float) -> None:
        """Multiply the learning rates."""
        self._rates *= factor

    def close(self) -> None:
        """Give the models their weights."""
        self._parameters.release()
        unstack_models(self.network, [task.network for task in self._tasks])
        for task in self._tasks:
            task.network.eval()


class _Plans:
    """Cuts lists of documents into steps of planned sizes."""

    def __init__(self, corpus: CorpusTensors, n_models: int) -> None:
        self.corpus, self._n_models, self._device = PlannedCorpus(corpus), n_models, corpus.device
        everything = torch.arange(len(corpus), device=corpus.device)
        self._graphs = corpus.n_graphs.cpu().numpy()
        self._nodes = corpus.document_sizes(everything).cpu().numpy() - self._graphs

    def cut(self, documents: NDArray[np.int64], recorded: list[PlanSize]) -> Iterator[tuple[Tensor, PlanSize]]:
        """Runs of neighbouring steps (steps, models, slots) of one size, planned: (steps, fields)."""
        on_device = torch.from_numpy(documents).to(self._device, non_blocking=True)
        sizes: list[PlanSize] = []
        for nodes, graphs in zip(*self._needed(documents), strict=True):
            fitting = [
                size
                for size in {*recorded, *sizes}
                if nodes < size.nodes <= _LOOSE * nodes + _UNIT and graphs < size.graphs <= _LOOSE * graphs + _UNIT
            ]
            sizes.append(min(fitting, key=lambda size: size.nodes) if fitting else self.room(nodes, graphs, documents))
        first = 0
        for last in range(1, len(sizes) + 1):
            if last == len(sizes) or sizes[last] != sizes[first]:
                yield self.corpus.plan(on_device[first:last], sizes[first]), sizes[first]
                first = last

    def _needed(self, documents: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Nodes and graphs that the largest slab of each step holds: (steps,) each."""
        known, asked = documents >= 0, documents.clip(min=0)
        nodes, graphs = ((count[asked] * known).sum(2).max(1) for count in (self._nodes, self._graphs))
        return nodes, graphs

    def room(self, nodes: int, graphs: int, documents: NDArray[np.int64]) -> PlanSize:
        """A size that holds so many and a dummy document, its rows a whole number of units."""
        slots = documents.shape[2]
        graphs = slots + 1 if self._graphs.max(initial=1) == 1 else -(-int(graphs + 1) // 64) * 64
        rows = -(-int(1.06 * nodes + graphs + 1) // _UNIT) * _UNIT
        return PlanSize(rows - graphs, graphs, slots + 1)

    def whole(self, documents: NDArray[np.int64]) -> tuple[Tensor, PlanSize]:
        """All steps in one size."""
        nodes, graphs = self._needed(documents)
        size = self.room(int(nodes.max()), int(graphs.max()), documents)
        return self.corpus.plan(torch.from_numpy(documents).to(self._device), size), size


class _Known:
    """Targets and weights of each model's documents, found by document."""

    def __init__(self, corpus: CorpusTensors, examples: Sequence[Examples]) -> None:
        self.documents = [part.documents.cpu().numpy() for part in examples]
        shape = len(examples), len(corpus), *examples[0].targets.shape[1:]
        self._targets = examples[0].targets.new_zeros(shape)
        self._weights = examples[0].weights.new_zeros(shape[:2])
        for model, part in enumerate(examples):
            self._targets[model, part.documents] = part.targets
            self._weights[model, part.documents] = part.weights

    def look_up(self, batch: PlannedBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Targets, weights, and whether there is a document at all: (models, documents) each."""
        real = batch.document >= 0
        asked = batch.document.clamp(min=0).long()
        weights = torch.where(real, self._weights.gather(1, asked), 0.0)
        if self._targets.ndim == 2:
            return self._targets.gather(1, asked), weights, real.float()
        models = torch.arange(asked.shape[0], device=asked.device)[:, None]
        return self._targets[models, asked], weights, real.float()


class _Held:
    """Held-out documents of each model, planned once."""

    def __init__(self, plans: _Plans, examples: Sequence[Examples]) -> None:
        self.known = _Known(examples[0].corpus, examples)
        longest = max(len(part) for part in examples)
        slots = min(_EVALUATED, longest)
        table = np.full((-(-longest // slots), len(examples), slots), -1)
        for model, documents in enumerate(self.known.documents):
            flat = np.full(table.shape[0] * slots, -1)
            flat[: len(documents)] = documents
            table[:, model] = flat.reshape(-1, slots)
        self.steps, self.size = plans.whole(table)
        self.sums = examples[0].weights.new_zeros(4, len(examples))
        self.recording: _Recording | None = None


class _Recording:
    """A step recorded as a CUDA graph: copy a planned batch into place, and replay."""

    def __init__(
        self,
        corpus: PlannedCorpus,
        example: Tensor,
        models: int,
        size: PlanSize,
        step: Callable[[PlannedBatch], None],
        changed: Sequence[Tensor],
    ) -> None:
        self._place = example.clone()
        before = [tensor.clone() for tensor in changed]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), _tensor_cores():
            step(corpus.batch(self._place, models, size))  # compiles kernels and warms caches up
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph), _tensor_cores():
            step(corpus.batch(self._place, models, size))
        for tensor, value in zip(changed, before, strict=True):
            tensor.copy_(value)

    def replay(self, step: Tensor) -> None:
        """Run the step on a planned batch."""
        self._place.copy_(step)
        self._graph.replay()


@contextmanager
def _tensor_cores() -> Iterator[None]:
    """Products in TF32: float32's range, ten bits of mantissa, sums in float32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
