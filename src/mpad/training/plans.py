"""Which documents a GPU sees at each step, in planned sizes, with their targets."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpad.graph.batch import CorpusTensors
from mpad.graph.planned import PlannedBatch, PlannedCorpus, PlanSize
from mpad.training.examples import Corpus, Examples
from mpad.training.recording import Recording

_UNIT = 128  # rows; slabs are whole multiples, so that products can be cut evenly
_LOOSE = 1.25  # a recorded step serves batches down to this part of its size
_PLANNED = 1 << 23  # nodes planned together
_EVALUATED = 512, 1 << 18  # documents and, about, nodes of a model that are evaluated together


class Plans:
    """Cuts lists of documents into steps of planned sizes."""

    def __init__(self, corpus: CorpusTensors) -> None:
        self.corpus, self._device = PlannedCorpus(corpus), corpus.device
        everything = torch.arange(len(corpus), device=corpus.device)
        self._graphs = corpus.n_graphs.cpu().numpy()
        self._nodes = corpus.document_sizes(everything).cpu().numpy() - self._graphs
        self.mean_nodes = float(self._nodes.mean()) if len(corpus) else 0.0

    def cut(self, documents: NDArray[np.int64], recorded: Iterable[PlanSize]) -> list[tuple[Tensor, PlanSize]]:
        """Steps (steps, models, slots) → each step's planned fields, and its size; in their order."""
        on_host = torch.from_numpy(documents)
        if self._device.type == "cuda":  # a copy from pinned memory does not wait for the epoch that is running
            on_host = on_host.pin_memory()
        on_device = on_host.to(self._device, non_blocking=True)
        sizes = self._sizes(documents, recorded)
        planned: dict[int, tuple[Tensor, PlanSize]] = {}
        for size in dict.fromkeys(sizes):  # all steps of a size at once, or as many as memory should hold
            steps = [step for step, other in enumerate(sizes) if other == size]
            together = max(1, _PLANNED // (documents.shape[1] * size.nodes))
            for start in range(0, len(steps), together):
                part = steps[start : start + together]
                fields = self.corpus.plan(on_device[part], size)
                planned.update(zip(part, zip(fields, [size] * len(part), strict=True), strict=True))
        return [planned[step] for step in range(len(sizes))]

    def _sizes(self, documents: NDArray[np.int64], recorded: Iterable[PlanSize]) -> list[PlanSize]:
        """A size for each step: a recorded one, if it is not much too large."""
        sizes: list[PlanSize] = []
        known = set(recorded)
        for nodes, graphs in zip(*self._needed(documents), strict=True):
            fitting = [
                size
                for size in known
                if nodes < size.nodes <= _LOOSE * nodes + _UNIT and graphs < size.graphs <= _LOOSE * graphs + _UNIT
            ]
            sizes.append(min(fitting, key=lambda size: size.nodes) if fitting else self.room(nodes, graphs, documents))
            known.add(sizes[-1])
        return sizes

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


class Known:
    """Targets and weights of each model's documents, found by document."""

    def __init__(self, corpus: Corpus, examples: Sequence[Examples]) -> None:
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


class Held:
    """Held-out documents of each model, in one part or two, planned once."""

    def __init__(self, plans: Plans, parts: Sequence[Sequence[Examples]]) -> None:
        n_models, corpus = len(parts[0]), parts[0][0].corpus
        together = [_joined([part[model] for part in parts]) for model in range(n_models)]
        self.known = Known(corpus, together)
        longest = max(len(documents) for documents in together)
        slots = min(_EVALUATED[0], longest, max(1, int(_EVALUATED[1] / max(plans.mean_nodes, 1))))
        table = np.full((-(-longest // slots), n_models, slots), -1)
        for model, documents in enumerate(self.known.documents):
            flat = np.full(table.shape[0] * slots, -1)
            flat[: len(documents)] = documents
            table[:, model] = flat.reshape(-1, slots)
        self.planned = plans.cut(table, [])
        weights = parts[0][0].weights
        self._part_of = weights.new_full((n_models, len(corpus)), -1, dtype=torch.int8)
        for number, part in enumerate(parts):
            for model, examples in enumerate(part):
                self._part_of[model, examples.documents] = number
        self._numbers = torch.arange(len(parts), device=weights.device)[:, None, None]
        self.counts = weights.new_tensor([[len(examples) for examples in part] for part in parts])
        self.sums = weights.new_zeros(len(parts), 3, n_models)
        self.recorded: dict[PlanSize, Recording] = {}

    def parts(self, batch: PlannedBatch) -> Tensor:
        """1 where a document belongs to a part: (parts, models, documents)."""
        part = self._part_of.gather(1, batch.document.clamp(min=0).long())
        return ((part == self._numbers) & (batch.document >= 0)).float()


def _joined(parts: Sequence[Examples]) -> Examples:
    return Examples(
        parts[0].corpus,
        *[torch.cat([getattr(part, name) for part in parts]) for name in ("documents", "targets", "weights")],
    )
