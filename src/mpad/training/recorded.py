"""Training one network after another on a GPU without launch cost: steps are recorded once and replayed.

For networks that cannot be stacked. A recording belongs to a network's tensors, so the next network of the same shape
moves into those: ten folds are recorded once.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpad.graph.batch import CorpusTensors
from mpad.sequence.batch import WordTensors
from mpad.sequence.planned import PlannedGraphs, PlannedWords, Planner, find_room
from mpad.training.eager import hear, load_network
from mpad.training.examples import Corpus, Examples
from mpad.training.loss import document_losses, rightness, weighted_loss
from mpad.training.recording import Recorder, Recording
from mpad.training.task import Batches, Result, Task

_EVALUATED = 256  # documents in one batch of evaluation
_EVALUATED_WORDS = 1 << 15  # and, about, words
_Room = tuple[int, ...]


def can_record(task: Task) -> bool:
    """Whether a network trains on a GPU over words in their order, or over graphs of them, without being stacked."""
    corpus = task.examples.corpus
    known = isinstance(corpus, WordTensors) or (isinstance(corpus, CorpusTensors) and not task.network.by_sentence)
    return known and not task.network.stackable and corpus.device.type == "cuda"


class Recorded:
    """Trains one model at a time by replaying recorded steps."""

    stacked = False

    def __init__(self, task: Task) -> None:
        corpus = task.examples.corpus
        self.network = copy.deepcopy(task.network)
        if not isinstance(self.network.vectors, torch.nn.Parameter):
            self.network.set_vectors(task.network.vectors)  # shared, not copied
        self._corpus = corpus
        self._planner: Planner = PlannedWords(corpus) if isinstance(corpus, WordTensors) else _graphs(corpus)
        self._sizes = corpus.document_sizes(torch.arange(len(corpus), device=corpus.device)).cpu().numpy()
        self._generator = torch.Generator(corpus.device)
        hear(self.network, self._generator)
        self._trained = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        self._rate = torch.zeros((), device=corpus.device)
        on_gpu = corpus.device.type == "cuda"
        self._adam = torch.optim.Adam(self._trained, lr=self._rate, fused=on_gpu, capturable=on_gpu)
        self._make_moments()
        targets = task.examples.targets
        self._targets = targets.new_zeros(len(corpus), *targets.shape[1:])  # by document of the corpus
        self._weights = task.examples.weights.new_zeros(len(corpus))
        self._held_weights = torch.zeros_like(self._weights)
        self._total = self._weights.new_zeros(())
        self._sums = self._weights.new_zeros(3)  # loss, weight and right ones, of what is held out
        self._recorder = Recorder(self._generator)
        self._steps: dict[_Room, Recording] = {}
        self._checks: dict[_Room, Recording] = {}
        self._prepared: list[list[tuple[Tensor, _Room]]] = []
        self.adopt(task)

    def fits(self, task: Task) -> bool:
        """Whether that network can move into this one's tensors."""
        ours, theirs = self.network.state_dict(), task.network.state_dict()
        same_vectors = self.network.vectors.data_ptr() == task.network.vectors.data_ptr()
        return (
            type(self.network) is type(task.network)
            and self.network.config == task.network.config
            and (isinstance(self.network.vectors, torch.nn.Parameter) or same_vectors)
            and self._corpus is task.examples.corpus
            and self._slots == task.config.batch_size + 2
            and {name: x.shape for name, x in ours.items()} == {name: x.shape for name, x in theirs.items()}
        )

    def adopt(self, task: Task) -> None:
        """Begin anew with that network's weights and documents."""
        self._task, self._slots = task, task.config.batch_size + 2  # a last batch of one joins; one only fills up
        self.network.load_state_dict(task.network.state_dict())
        for state in self._adam.state.values():
            for value in state.values():
                value.zero_()
        self._rate.fill_(task.config.learning_rate)
        self._generator.manual_seed(int(task.config.seed))
        self._weights.zero_()
        self._held_weights.zero_()
        held = task.examples if task.validation is None else task.validation
        self._know(task.examples, self._weights)
        self._know(held, self._held_weights)
        self._documents = task.examples.documents.cpu().numpy()
        self._held = self._evaluation(held)
        self._watched = None if task.watched is None else self._evaluation(task.watched)
        if task.watched is not None:
            self._know(task.watched, self._held_weights)
        self._prepared.clear()

    def _know(self, examples: Examples, weights: Tensor) -> None:
        self._targets[examples.documents] = examples.targets
        weights[examples.documents] = examples.weights

    def _make_moments(self) -> None:
        """Adam makes them at its first step; one by gradients of zero changes nothing."""
        for parameter in self._trained:
            parameter.grad = torch.zeros_like(parameter)
        self._adam.step()
        self._adam.zero_grad()

    def prepare(self, orders: Sequence[Batches]) -> None:
        """Send the next epoch's documents to the GPU."""
        batches = [self._documents[rows] for rows in orders[0]]
        self._prepared.append(self._planned(batches, self._slots, self._steps))

    def _planned(
        self, batches: Sequence[NDArray[np.int64]], slots: int, recorded: dict[_Room, Recording]
    ) -> list[tuple[Tensor, _Room]]:
        table = np.full((len(batches), slots), -1)
        rooms: list[_Room] = []
        for row, batch in zip(table, batches, strict=True):
            row[: len(batch)] = batch
            room = self._planner.room(batch)
            rooms.append(find_room(room, [*recorded, *rooms]) or room)
        on_host = torch.from_numpy(table)
        if self._corpus.device.type == "cuda":  # a copy from pinned memory does not wait for the epoch that is running
            on_host = on_host.pin_memory()
        return list(zip(on_host.to(self._corpus.device, non_blocking=True).unbind(), rooms, strict=True))

    def _evaluation(self, examples: Examples) -> list[tuple[Tensor, _Room]]:
        documents = examples.documents.cpu().numpy()
        documents = documents[np.argsort(self._sizes[documents], kind="stable")]
        number = np.maximum(
            np.cumsum(self._sizes[documents]) // _EVALUATED_WORDS, np.arange(len(documents)) // (_EVALUATED - 1)
        )
        parts = np.split(documents, np.flatnonzero(np.diff(number)) + 1)
        most = _EVALUATED - 1  # the last slot only fills up
        batches = [part[first : first + most] for part in parts for first in range(0, len(part), most)]
        return self._planned(batches, _EVALUATED, self._checks)

    def start(self) -> None:
        """Launch every step of the epoch, and of its evaluation; the GPU runs behind."""
        self.network.train()
        self._total.zero_()
        epoch = self._prepared.pop(0)
        for documents, room in _new(epoch, self._steps):
            state = [x for values in self._adam.state.values() for x in values.values()]
            changed = [*self._trained, *state, self._total]
            self._steps[room] = self._recorder.record(documents, partial(self._step, room), changed)
        for documents, room in epoch:
            self._steps[room].replay(documents)
        self.network.eval()
        found = [(self._total / len(self._documents))[None], self._evaluate(self._held)]
        if self._watched is not None:
            found.append(self._evaluate(self._watched))
        self._found = torch.cat(found)

    def finish(self) -> list[Result]:
        """Look at the numbers, for the first time in the epoch."""
        train_loss, loss, accuracy, *watched = self._found.tolist()
        return [Result(train_loss, loss, accuracy, watched[1] if watched else None)]

    def _step(self, room: _Room, documents: Tensor) -> None:
        self._adam.zero_grad()
        logits, targets, real = self._answer(room, documents)
        weights = self._weights[documents.clamp(min=0)] * real
        loss = weighted_loss(logits, targets, weights)
        loss.backward()
        self._adam.step()
        self._total += loss.detach() * real.sum()

    def _answer(self, room: _Room, documents: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits and targets of the batch's slots, and which of them are real."""
        logits = self.network(self._planner.batch(documents, room)).logits
        return logits, self._targets[documents.clamp(min=0)], documents >= 0

    @torch.no_grad()
    def _evaluate(self, planned: Sequence[tuple[Tensor, _Room]]) -> Tensor:
        """Loss and accuracy: (2,)."""
        self._sums.zero_()
        for documents, room in _new(planned, self._checks):
            self._checks[room] = self._recorder.record(documents, partial(self._check, room), [self._sums])
        for documents, room in planned:
            self._checks[room].replay(documents)
        n = torch.stack([documents for documents, _ in planned]).ge(0).sum()
        loss, weight, right = self._sums
        return torch.stack([loss / weight.clamp(min=torch.finfo(weight.dtype).tiny), right / n])

    def _check(self, room: _Room, documents: Tensor) -> None:
        logits, targets, real = self._answer(room, documents)
        weights = self._held_weights[documents.clamp(min=0)] * real
        each = torch.stack([document_losses(logits, targets) * weights, weights, rightness(logits, targets) * real])
        self._sums += each.sum(1)

    def scale_learning_rate(self, factor: float) -> None:
        """Multiply the learning rate."""
        self._rate *= factor

    def state(self) -> dict[str, Tensor]:
        """Network, optimiser and the dropout's generator."""
        found = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        return {**found, **self._counters, "dropout.generator": self._generator.get_state()}

    @property
    def _counters(self) -> dict[str, Tensor]:
        moments = enumerate(self._adam.state[parameter] for parameter in self._trained)
        return {"rate": self._rate} | {f"adam.{k}.{name}": x for k, own in moments for name, x in own.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Put back what `state` gave, where recorded steps look for it."""
        load_network(self.network, state)
        for name, own in self._counters.items():
            own.copy_(state[name])
        self._generator.set_state(state["dropout.generator"].cpu())

    def close(self) -> None:
        """Give the model its weights."""
        self._task.network.load_state_dict(self.network.state_dict())
        self._task.network.eval()


def _new(planned: Sequence[tuple[Tensor, _Room]], recorded: dict[_Room, Recording]) -> Iterator[tuple[Tensor, _Room]]:
    """A batch of each size that has not been recorded, the largest first: the others fit into its memory."""
    found = {room: documents for documents, room in planned if room not in recorded}
    for room in sorted(found, key=prod, reverse=True):
        yield found[room], room


def _graphs(corpus: Corpus) -> PlannedGraphs:
    assert isinstance(corpus, CorpusTensors)  # as can_record has seen
    return PlannedGraphs(corpus)
