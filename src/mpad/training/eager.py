"""Training step by step, operator by operator: on a CPU, and on any device that torch knows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mpad.graph.batch import GraphBatch, stack_batches
from mpad.models.network import Network
from mpad.nn.compiled import memory
from mpad.nn.dropout import Dropout, Noise
from mpad.training.adam import make_adam
from mpad.training.examples import Corpus, Examples
from mpad.training.loss import rightness, weighted_loss
from mpad.training.stack import stack_models, unstack_models
from mpad.training.task import Batches, Result, Task

if TYPE_CHECKING:
    from mpad.nn.kernels.noise import DeviceNoise

_EVALUATION_NODES = 16_384  # words in one batch of evaluation: more spill out of the cache


class Eager:
    """Trains one model, or several stacked ones, by plain torch operators."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self.stacked = len(tasks) > 1
        self.network = stack_models([task.network for task in tasks]) if self.stacked else tasks[0].network
        rates = [float(task.config.learning_rate) for task in tasks]
        trained = (parameter for parameter in self.network.parameters() if parameter.requires_grad)
        self._optimiser = make_adam(list(trained), rates if self.stacked else rates[0])
        self._prepared: list[Sequence[Batches]] = []
        self._noise = Noise([task.config.seed for task in tasks])
        device = tasks[0].examples.documents.device
        drawn_there = device.type == "cuda" and not self.stacked  # not on the host, to be copied
        self._generator = torch.Generator(device).manual_seed(int(tasks[0].config.seed)) if drawn_there else None
        hear(self.network, self._generator or self._noise)

    def prepare(self, orders: Sequence[Batches]) -> None:
        """Remember the next epoch's batches."""
        self._prepared.append(orders)

    def start(self) -> None:
        """Nothing runs ahead here: `finish` does the work."""

    def finish(self) -> list[Result]:
        """Pass once over each model's batches, then look at its held-out documents."""
        losses = self.pass_over(self._prepared.pop(0))
        self.network.eval()
        networks = [task.network for task in self._tasks]
        if self.stacked:
            unstack_models(self.network, networks)
        return [
            _judge(network.eval(), task, loss)
            for network, task, loss in zip(networks, self._tasks, losses, strict=True)
        ]

    def pass_over(self, orders: Sequence[Batches]) -> list[float]:
        """Learn from each model's batches, once; their mean losses."""
        self.network.train()
        device = self._tasks[0].examples.documents.device
        losses, counts = [], []
        for step in range(max(len(order) for order in orders)):
            rows = [order[step] if step < len(order) else np.zeros(0, np.int64) for order in orders]
            counts.append([len(row) for row in rows])
            with memory.one_step():
                losses.append(self._step([torch.from_numpy(row).to(device) for row in rows]))
        if not losses:
            return [0.0] * len(self._tasks)
        total = (torch.stack(losses).view(len(losses), -1).cpu() * torch.tensor(counts)).sum(0)
        return [float(x) / len(task.examples) for x, task in zip(total.tolist(), self._tasks, strict=True)]

    def _step(self, rows: Sequence[Tensor]) -> Tensor:
        active = [len(row) > 0 for row in rows]
        self._noise.next_step(active)
        taken = [task.examples.take(row) for task, row in zip(self._tasks, rows, strict=True)]
        batch, targets, weights = _side_by_side(taken) if self.stacked else taken[0]
        self._optimiser.zero_grad()
        output = self.network(batch)
        losses = weighted_loss(output.logits, targets, weights)
        loss = losses.sum() if self.stacked else losses  # each model's own weights
        (loss if output.extra is None else loss + output.extra).backward()
        self._optimiser.step(active)
        return losses.detach()

    def scale_learning_rate(self, factor: float) -> None:
        """Multiply the learning rates."""
        self._optimiser.scale_learning_rate(factor)

    def state(self) -> dict[str, Tensor]:
        """Network, optimiser and the dropout's counters."""
        found = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        found |= {f"adam.{name}": value for name, value in self._optimiser.state().items()}
        found["dropout.steps"] = torch.tensor(self._noise.steps)
        return found if self._generator is None else {**found, "dropout.generator": self._generator.get_state()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Put back what `state` gave."""
        load_network(self.network, state)
        self._optimiser.load_state(
            {name.removeprefix("adam."): value for name, value in state.items() if name.startswith("adam.")}
        )
        self._noise.steps = state["dropout.steps"].tolist()
        if self._generator is not None:
            self._generator.set_state(state["dropout.generator"].cpu())

    def close(self) -> None:
        """Give the models their weights."""
        self._optimiser.zero_grad()
        self._optimiser.release()
        memory.forget()
        if self.stacked:
            unstack_models(self.network, [task.network for task in self._tasks])
        for task in self._tasks:
            task.network.eval()


def load_network(network: Network, state: Mapping[str, Tensor]) -> None:
    """Put back a network's part of an engine's state, in place."""
    prefix = "network."
    network.load_state_dict({name.removeprefix(prefix): x for name, x in state.items() if name.startswith(prefix)})


def hear(network: Network, noise: "Noise | DeviceNoise | torch.Generator") -> None:
    """Let the network's dropout draw from this noise."""
    for module in network.modules():
        if isinstance(module, Dropout):
            module.noise = noise


def _side_by_side(taken: Sequence[tuple[GraphBatch, Tensor, Tensor]]) -> tuple[GraphBatch, Tensor, Tensor]:
    batch = stack_batches([part for part, _, _ in taken])
    n = batch.n_documents // len(taken)

    def filled(x: Tensor) -> Tensor:
        return torch.cat([x, x.new_zeros((n - x.shape[0], *x.shape[1:]))])

    targets = torch.stack([filled(part) for _, part, _ in taken])
    return batch, targets, torch.stack([filled(part) for _, _, part in taken])


def _judge(network: Network, task: Task, train_loss: float) -> Result:
    loss, accuracy = evaluate(network, task.examples if task.validation is None else task.validation)
    watched = None if task.watched is None else evaluate(network, task.watched)[1]
    return Result(train_loss, loss, accuracy, watched)


@torch.no_grad()
def evaluate(model: Network, examples: Examples) -> tuple[float, float]:
    """Loss and accuracy; of many labels a document, accuracy is the share of right cells."""
    logits = torch.cat([model(batch).logits for batch in batches(examples.corpus, examples.documents)])
    loss = weighted_loss(logits, examples.targets, examples.weights)
    return float(loss), float(rightness(logits, examples.targets).mean())


def batches(corpus: Corpus, documents: Tensor) -> Iterator[Any]:
    """Cut documents, in order, into batches of about as many words each."""
    sizes = corpus.document_sizes(documents).cpu().numpy()
    number = np.cumsum(sizes) // _EVALUATION_NODES
    for part in np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(number)) + 1):
        yield corpus.take(documents[torch.from_numpy(part).to(documents.device)])
