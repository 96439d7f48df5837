"""The training engine: one step and one evaluation, for one model or for several stacked ones.

On a GPU both are recorded as CUDA graphs and replayed; the host reads results once per epoch.
"""

import copy
import gc
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from mpad import kernels
from mpad.dropout import Dropout, DropoutCounter, set_dropout_counter
from mpad.errors import InputError
from mpad.graph.batch import CorpusTensors
from mpad.kernels.cpu import one_step, release_workspace
from mpad.network import Network, in_batches
from mpad.sequence.batch import WordTensors
from mpad.training.adam import Adam, Decay
from mpad.training.batches import (
    BatchSource,
    DynamicBatches,
    StaticGraphBatches,
    StaticSequenceBatches,
    Step,
    Targets,
    largest_first,
    table,
)
from mpad.training.processes import ALONE, Processes
from mpad.training.task import CLASSIFY, Batches, Examples, Result, Task


class HeldOut:
    """Held-out documents of each model, and their evaluation."""

    def __init__(
        self, source: BatchSource, examples: Sequence[Examples], check: Any, pool: "Pool | None", processes: Processes
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


class Engine:
    """Trainer of one model, or of several stacked into one network whose weights have a leading axis."""

    def __init__(
        self,
        tasks: Sequence[Task],
        source: BatchSource | None = None,
        processes: Processes = ALONE,
    ) -> None:
        self._processes = processes
        self._device, self._objective = tasks[0].examples.documents.device, tasks[0].objective
        self.stacked = isinstance(source, StaticGraphBatches)
        self._source = source
        captured = source is not None and self._device.type == "cuda"
        own = self._own_network([task.network for task in tasks], copied=source is not None)
        self.network = processes.share_batches(own) if processes.size > 1 else kernels.accelerate(own)
        self._counter = DropoutCounter([task.config.seed for task in tasks], self._device)
        set_dropout_counter(self.network, self._counter)
        trained = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        self._trained = trained
        rates = [task.config.learning_rate for task in tasks]
        config = tasks[0].config
        decay = Decay(config.weight_decay, _matrices(self.network), config.anchor)
        self._adam = Adam(trained, rates, self._counter.steps, decay)
        self._accumulators = None
        if self._device.type == "cuda":
            from mpad.kernels.cuda import Accumulators

            self._accumulators = Accumulators()  # concurrent trainings have one each
        self._pool = Pool() if captured else None
        self.train_step = Captured(self._step, self._changed, self._pool)
        self._total = self._adam.rates.new_zeros(len(tasks))
        self.prepared: list[list[Step]] = []
        self._take(tasks)

    def _own_network(self, networks: Sequence[Network], copied: bool) -> Network:
        if self.stacked:
            return stack_models(networks)
        if not copied:
            return networks[0]
        own = copy.deepcopy(networks[0])  # recorded steps belong to its tensors
        if not isinstance(own.vectors, nn.Parameter):
            own.set_vectors(networks[0].vectors)  # shared, not copied
        return own

    def _take(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._training = Targets([task.examples for task in tasks])
        self._batches = self._source or DynamicBatches(tasks[0].examples.corpus)
        checks = [task.examples if task.validation is None else task.validation for task in tasks]
        watched = [task.watched for task in tasks if task.watched is not None]
        self._held = [
            HeldOut(self._source or DynamicBatches(part[0].corpus), part, self._check, self._pool, self._processes)
            for part in ([checks, watched] if watched else [checks])
        ]

    def fits(self, task: Task) -> bool:
        """Return whether another network can use this engine's tensors and recordings."""
        if self._source is None or self.stacked:
            return False
        mine, network = self._tasks[0], task.network
        same_vectors = self.network.vectors.data_ptr() == network.vectors.data_ptr()
        return (
            self.network.config == network.config
            and (isinstance(self.network.vectors, nn.Parameter) or same_vectors)
            and mine.examples.corpus is task.examples.corpus
            and mine.config.batch_size == task.config.batch_size
            and _shapes(self.network) == _shapes(network)
        )

    def adopt(self, task: Task) -> None:
        """Start again with another network's weights and documents."""
        self.network.load_state_dict(task.network.state_dict())
        self._adam.reset([task.config.learning_rate])
        self._counter.seeds.fill_(int(task.config.seed))
        self._counter.steps.zero_()
        self._tasks = [task]
        self._training.set([task.examples])
        parts = [task.examples if task.validation is None else task.validation, task.watched]
        for held, part in zip(self._held, parts, strict=False):
            assert part is not None
            held.set([part])
        self.prepared.clear()

    # ── An epoch ──

    def prepare(self, orders: Sequence[Batches]) -> None:
        """Cut the next epoch's batches out of the corpus; the current epoch may still be running."""
        documents = [
            [known[rows] for rows in order] for order, known in zip(orders, self._training.documents, strict=True)
        ]
        slots = self._tasks[0].config.batch_size + 1 if self._source is not None else None  # a last batch of one joins
        self.prepared.append(self._batches.steps(table(documents, slots), self.train_step.recordings))

    def evaluate(self) -> None:
        """Evaluate the held-out documents."""
        self.network.eval()
        self._evaluated = [held.evaluate() for held in self._held]

    def train_on_window(self, examples: Examples, batches: Batches, rows_before: Sequence[int]) -> None:
        """Train on a window of a corpus that is not in memory, one step per batch.

        `rows_before`: documents of each whole batch that earlier processes hold.
        """
        self._training = Targets([examples])
        self._batches = DynamicBatches(examples.corpus)
        self.prepare([batches])
        self.pass_over(rows_before)

    def pass_over(self, rows_before: Sequence[int] | None = None) -> None:
        """Train on the batches that `prepare` has cut, once; a GPU runs asynchronously."""
        self.network.train()
        steps = self.prepared.pop(0)
        if self._pool is not None:
            new = [step for step in steps if step[1] not in self.train_step.recordings]
            for given, shape in largest_first(new):
                self.train_step.record(given, shape)
        for (given, shape), before in zip(steps, rows_before or [0] * len(steps), strict=True):
            self._counter.rows_before = before
            self.train_step(given, shape)

    def finish(self, documents: int | None = None) -> list[Result]:
        """Wait for the epoch to end and return each model's result. `documents`: their number in streamed fits."""
        counts = [max(len(task.examples) if documents is None else documents, 1) for task in self._tasks]
        total = self._processes.sum(self._total.clone())
        self._total.zero_()
        train = [loss / n for loss, n in zip(total.tolist(), counts, strict=True)]
        result = [zip(*part.tolist(), strict=True) for part in self._evaluated]
        watched = [accuracy for _, accuracy in result[1]] if len(result) > 1 else [None] * len(train)
        return [
            Result(loss, held_loss, accuracy, other)
            for loss, (held_loss, accuracy), other in zip(train, result[0], watched, strict=True)
        ]

    # ── A step, and a step of evaluation ──

    def _step(self, given: Any, shape: Hashable) -> None:
        # Kernels share memory within a step; their results must not outlive it.
        with one_step() if self._accumulators is None else self._accumulators.cleared(self._device):
            batch, documents = self._batches.batch(given, shape)
            targets, weights, real = self._training.look_up(documents)
            counts, whole = self._processes.sum(torch.stack([real.sum(1), weights.sum(1)]))
            active = (counts > 0).long()
            self._counter.advance(active)
            self._adam.zero_grad()
            output = self.network(batch)
            losses = self._objective.mean(self._by_model(output.logits), targets, weights, whole)
            loss = losses.sum()  # each model's loss moves its own weights alone
            (loss if output.extra is None else loss + output.extra).backward()
            self._processes.sum_gradients(self._trained)
            self._adam.step(active)
            self._total += losses.detach() * counts

    @torch.no_grad()
    def _check(self, held: HeldOut, given: Any, shape: Hashable) -> None:
        batch, documents = held.source.batch(given, shape)
        targets, weights, real = held.targets.look_up(documents)
        logits = self._by_model(self.network(batch).logits)
        losses, scores = self._objective.losses(logits, targets), self._objective.scores(logits, targets)
        each = losses * weights, weights, scores * real
        held.sums += torch.stack(each).sum(-1)

    def _by_model(self, logits: Tensor) -> Tensor:
        """Return logits as (models, documents, classes)."""
        return logits if self.stacked else logits[None]

    def _changed(self) -> list[Tensor]:
        """Return every tensor that a step changes."""
        averages = [buffer for name, buffer in self.network.named_buffers() if name != "vectors"]
        return [*self._adam.changed(), *averages, self._counter.steps, self._total]

    # ── Between epochs ──

    def set_learning_rate(self, factor: float) -> None:
        """Multiply each model's learning rate by a factor."""
        rates = torch.tensor([task.config.learning_rate * factor for task in self._tasks], dtype=torch.float64)
        self._adam.rates.copy_(rates)

    def state(self) -> dict[str, Tensor]:
        """Return everything that the next epoch depends on except its batches, for a checkpoint."""
        network = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        optimizer = {f"adam.{name}": value for name, value in self._adam.state().items()}
        return {**network, **optimizer, "steps": self._counter.steps}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned, in place, because recorded steps read these tensors."""
        self.network.load_state_dict(_within(state, "network."))
        self._adam.load_state(_within(state, "adam."))
        self._counter.steps.copy_(state["steps"])

    def close(self) -> None:
        """Copy the trained weights into the models."""
        networks = [task.network for task in self._tasks]
        if self._source is None or self.stacked:  # another network may still move into these tensors
            self._adam.release()
        if self._accumulators is None:
            release_workspace()
        if self.stacked:
            unstack_models(self.network, networks)
        elif self.network is not networks[0]:
            networks[0].load_state_dict(self.network.state_dict())
        for network in networks:
            network.eval()
        self._processes.leave_batches(self.network)


def find_engine(tasks: Sequence[Task], before: Engine | None = None) -> Engine:
    """Return the fastest engine for these models; reuse the recordings of the previous one if possible."""
    corpus, network = tasks[0].examples.corpus, tasks[0].network
    on_gpu = tasks[0].examples.documents.device.type == "cuda"
    held = [part for task in tasks for part in (task.examples, task.validation, task.watched) if part is not None]
    one_corpus = len({id(part.corpus) for part in held}) == 1
    static = kernels.supports_static_batches(corpus.device)
    if static and one_corpus and network.stackable and isinstance(corpus, CorpusTensors):
        return Engine(tasks, StaticGraphBatches(corpus, len(tasks)))
    if on_gpu and one_corpus and len(tasks) == 1 and not network.stackable and _fixed_shapes(corpus, network):
        if before is not None and before.fits(tasks[0]):
            before.adopt(tasks[0])
            return before
        assert isinstance(corpus, WordTensors | CorpusTensors)
        return Engine(tasks, StaticSequenceBatches(corpus))
    return Engine(tasks)


def _matrices(network: Network) -> list[nn.Parameter]:
    """Weights of the linear maps."""
    linear = [module for module in network.modules() if isinstance(module, nn.Linear)]
    return [module.weight for module in linear if isinstance(module.weight, nn.Parameter)]


def _fixed_shapes(corpus: object, network: Network) -> bool:
    return isinstance(corpus, WordTensors) or (isinstance(corpus, CorpusTensors) and not network.by_sentence)


def _shapes(network: Network) -> dict[str, torch.Size]:
    return {name: x.shape for name, x in network.state_dict().items()}


def _within(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


@torch.no_grad()
def evaluate(network: Network, examples: Examples) -> tuple[float, float]:
    """Return loss and accuracy; for multi-label data, accuracy is the share of correct single decisions."""
    logits = torch.cat([network(batch).logits for batch in in_batches(examples.corpus, examples.documents)])
    loss = CLASSIFY.mean(logits, examples.targets, examples.weights)
    return float(loss), float(CLASSIFY.scores(logits, examples.targets).mean())


# ── Recorded steps ──

_recording = Lock()


class Captured:
    """Function of an input and its static shape that changes tensors in place, recorded once per shape.

    `changed` returns all tensors that it changes: recording runs the function and then restores them. Recordings of
    one `pool` run one after another and share their memory. Without a pool, on a CPU, the function simply runs.
    """

    def __init__(
        self, step: Callable[[Any, Hashable], None], changed: Callable[[], Sequence[Tensor]], pool: "Pool | None"
    ) -> None:
        self._step, self._changed, self._pool = step, changed, pool
        self.recordings: dict[Hashable, tuple[Tensor, torch.cuda.CUDAGraph]] = {}

    def __call__(self, given: Any, shape: Hashable) -> None:
        """Run the step."""
        if self._pool is None:
            self._step(given, shape)
            return
        if shape not in self.recordings:
            self.record(given, shape)
        place, graph = self.recordings[shape]
        place.copy_(given)
        graph.replay()

    def record(self, example: Tensor, shape: Hashable) -> None:
        """Record the step for a shape; one recording at a time in a process, whose precision it changes."""
        with _recording:
            self._record(example, shape)

    def _record(self, example: Tensor, shape: Hashable) -> None:
        pool, changed = self._pool, self._changed()
        assert pool is not None
        place, before = example.clone(), [tensor.detach().clone() for tensor in changed]
        pool.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(pool.stream), _tensor_cores():
            if not self.recordings:
                with kernels.compile_ahead():
                    self._step(place, shape)
            self._step(place, shape)  # warms caches up
        torch.cuda.current_stream().wait_stream(pool.stream)
        graph = torch.cuda.CUDAGraph()
        thread_local: Any = "thread_local"  # other threads may use the GPU meanwhile
        with (
            _no_garbage_collection(),
            torch.cuda.graph(graph, pool=pool.handle, stream=pool.stream, capture_error_mode=thread_local),
            _tensor_cores(),
        ):
            self._step(place, shape)
        with torch.no_grad():
            for tensor, value in zip(changed, before, strict=True):
                tensor.copy_(value)
        self.recordings[shape] = place, graph


class Pool:
    """Memory and stream of the recordings of one training."""

    def __init__(self) -> None:
        self.handle, self.stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Turn off garbage collection, which could free older recordings; CUDA forbids that while recording."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _tensor_cores() -> Iterator[None]:
    """Products in TF32: float32's range, ten bits of mantissa, sums in float32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def stack_models(models: Sequence[Network]) -> Network:
    """Return one model that computes several, each on its own rows; weights get a leading axis.

    Models may differ in their weights and their dropout rates, not in their shape. Fixed word vectors that are the
    same in all of them are kept once.
    """
    shapes = {tuple(item for item in vars(model.config).items() if item[0] != "dropout") for model in models}
    if len(shapes) != 1:
        raise InputError(f"only models of one architecture train together; found {len(shapes)} different ones")
    stacked = copy.deepcopy(models[0])
    stacked.vectors = _stacked_vectors(models)
    with torch.no_grad():
        for name, module in stacked.named_modules():
            own = [model.get_submodule(name) for model in models]
            for key in module._parameters:
                if key != "vectors" and module._parameters[key] is not None:
                    value = torch.stack([other._parameters[key].detach() for other in own])  # type: ignore[union-attr]
                    trained = module._parameters[key].requires_grad
                    module._parameters[key] = nn.Parameter(value, requires_grad=trained)
            for key in module._buffers:
                if key != "vectors" and module._buffers[key] is not None:
                    module._buffers[key] = torch.stack([other._buffers[key] for other in own])  # type: ignore[misc]
    for name, module in stacked.named_modules():
        if isinstance(module, Dropout):  # some models may drop nothing
            module.p = max(model.get_submodule(name).p for model in models)  # type: ignore[type-var, assignment]
    return stacked


def _stacked_vectors(models: Sequence[Network]) -> Tensor:
    tables = [model.vectors.detach() for model in models]
    if models[0].config.learn_vectors:
        return nn.Parameter(torch.stack(tables))
    if all(table.data_ptr() == tables[0].data_ptr() or torch.equal(table, tables[0]) for table in tables[1:]):
        return tables[0]
    return torch.stack(tables)


def unstack_models(stacked: Network, models: Sequence[Network]) -> None:
    """Copy each model's weights back into it."""
    with torch.no_grad():
        states = stacked.state_dict()
        for number, model in enumerate(models):
            model.load_state_dict({name: value[number] for name, value in states.items()})
