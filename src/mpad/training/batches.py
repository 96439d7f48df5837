"""Batches: lists of documents → what the network reads at each step.

A step has a row of documents per model, padded with -1. Batches are as long as their documents (dynamic), or padded to
one of a few static shapes, so that a step can be recorded once and replayed.
"""

from collections.abc import Hashable, Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpad.graph.batch import CorpusTensors
from mpad.kernels.static_batch import BatchShape, StaticCorpus
from mpad.network import Corpus, batch_numbers
from mpad.sequence.batch import WordTensors
from mpad.sequence.static_batch import StaticGraphs, StaticWords, find_shape
from mpad.training.task import Examples

Documents = NDArray[np.int64]  # (steps, models, slots), -1 for none
Step = tuple[Any, Hashable]  # what `batch` takes: an input and its shape

_UNIT = 128  # rows; a model's rows are whole multiples, so that products can be cut evenly
_LOOSE = 1.25  # a recorded step serves batches down to this part of its size
_CUT = 1 << 23  # nodes that are cut out of a corpus at once
_EVALUATED = 512, 1 << 18  # documents and, about, nodes of a model that are evaluated together
_EVALUATED_WORDS = 256, 1 << 15  # documents and, about, words of networks over sequences


def table(parts: Sequence[Sequence[NDArray[np.int64]]], slots: int | None = None) -> Documents:
    """Return one array of the documents of each model and step."""
    n_steps = max(len(part) for part in parts)
    slots = slots or max((len(batch) for part in parts for batch in part), default=1)
    documents = np.full((n_steps, len(parts), slots), -1)
    for model, part in enumerate(parts):
        for step, batch in enumerate(part):
            documents[step, model, : len(batch)] = batch
    return documents


class DynamicBatches:
    """Batches of one model, as long as their documents."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def steps(self, documents: Documents, recorded: Iterable[Hashable]) -> list[Step]:
        """Return the input and shape of each step; sources of static shapes reuse `recorded` ones."""
        return [(torch.from_numpy(row[row >= 0]), None) for row in documents[:, 0]]

    def batch(self, given: Tensor, shape: Hashable) -> tuple[Any, Tensor]:
        """Return what the network reads at a step, and the documents of each model: (models, slots), -1 for none."""
        documents = given.to(self._corpus.device)
        return self._corpus.take(documents), documents[None]

    def held_out(self, documents: Sequence[NDArray[np.int64]]) -> Documents:
        """Cut documents, in order, into batches of about as many words each."""
        (part,) = documents
        number = batch_numbers(self._corpus, torch.from_numpy(part).to(self._corpus.device))
        return table([np.split(part, np.flatnonzero(np.diff(number)) + 1)])


class StaticGraphBatches:
    """Graphs of words of several models, in static shapes; batches point into the corpus, which is on the device."""

    def __init__(self, corpus: CorpusTensors, n_models: int) -> None:
        self.corpus, self._device, self._models = StaticCorpus(corpus), corpus.device, n_models
        everything = torch.arange(len(corpus), device=corpus.device)
        self._graphs = corpus.n_graphs.cpu().numpy()
        self._nodes = corpus.document_sizes(everything).cpu().numpy() - self._graphs

    def steps(self, documents: Documents, recorded: Iterable[Hashable]) -> list[Step]:
        """Cut out all steps of a shape at once, or as many as fit into memory."""
        on_device = _on_device(documents, self._device)
        shapes = self._shapes(documents, recorded)
        cut: dict[int, Step] = {}
        for shape in dict.fromkeys(shapes):
            steps = [step for step, other in enumerate(shapes) if other == shape]
            together = max(1, _CUT // (documents.shape[1] * shape.nodes))
            for start in range(0, len(steps), together):
                part = steps[start : start + together]
                fields = self.corpus.cut(on_device[part], shape)
                cut.update(zip(part, zip(fields, [shape] * len(part), strict=True), strict=True))
        return [cut[step] for step in range(len(shapes))]

    def batch(self, given: Tensor, shape: Hashable) -> tuple[Any, Tensor]:
        """Return views of a step's fields."""
        assert isinstance(shape, BatchShape)
        batch = self.corpus.batch(given, self._models, shape)
        return batch, batch.document

    def held_out(self, documents: Sequence[NDArray[np.int64]]) -> Documents:
        """Use as many documents per step as fit into memory."""
        longest = max(len(part) for part in documents)
        mean = float(self._nodes.mean()) if len(self._nodes) else 1.0
        slots = min(_EVALUATED[0], longest, max(1, int(_EVALUATED[1] / max(mean, 1))))
        return table([[part[k : k + slots] for k in range(0, len(part), slots)] for part in documents], slots)

    def _shapes(self, documents: Documents, recorded: Iterable[Hashable]) -> list[BatchShape]:
        """Return a shape for each step: a recorded one, if it is not much too large."""
        shapes: list[BatchShape] = []
        known = {shape for shape in recorded if isinstance(shape, BatchShape)}
        asked, there = documents.clip(min=0), documents >= 0
        nodes, graphs = ((count[asked] * there).sum(2).max(1) for count in (self._nodes, self._graphs))
        for n, g in zip(nodes, graphs, strict=True):
            fitting = [
                shape
                for shape in known
                if n < shape.nodes <= _LOOSE * n + _UNIT
                and g < shape.graphs <= _LOOSE * g + _UNIT
                and shape.documents == documents.shape[2] + 1
            ]
            smallest = min(fitting, key=lambda shape: shape.nodes) if fitting else self.shape(n, g, documents.shape[2])
            shapes.append(smallest)
            known.add(smallest)
        return shapes

    def shape(self, nodes: int, graphs: int, slots: int) -> BatchShape:
        """Return a shape with room for these and a dummy document; its rows are a multiple of the unit."""
        graphs = slots + 1 if self._graphs.max(initial=1) == 1 else -(-int(graphs + 1) // 64) * 64
        rows = -(-int(1.06 * nodes + graphs + 1) // _UNIT) * _UNIT
        return BatchShape(rows - graphs, graphs, slots + 1)


class StaticSequenceBatches:
    """Words in their order, or one graph per document, of one model, in static shapes."""

    def __init__(self, corpus: WordTensors | CorpusTensors) -> None:
        self._source = StaticWords(corpus) if isinstance(corpus, WordTensors) else StaticGraphs(corpus)
        self._device = corpus.device
        self._sizes = corpus.document_sizes(torch.arange(len(corpus), device=corpus.device)).cpu().numpy()

    def steps(self, documents: Documents, recorded: Iterable[Hashable]) -> list[Step]:
        """Return steps with room for a dummy document."""
        documents = np.concatenate([documents, np.full((len(documents), 1, 1), -1)], axis=2)
        known: list[Any] = [shape[1] for shape in recorded if shape[0] == documents.shape[2]]  # type: ignore[index]
        shapes = []
        for row in documents[:, 0]:
            shape = self._source.shape(row[row >= 0])
            shapes.append(find_shape(shape, known) or shape)
            known.append(shapes[-1])
        inputs = _on_device(documents[:, 0], self._device)
        return [(given, (documents.shape[2], shape)) for given, shape in zip(inputs, shapes, strict=True)]

    def batch(self, given: Tensor, shape: Hashable) -> tuple[Any, Tensor]:
        """Cut the documents out without waiting for the device."""
        return self._source.batch(given, shape[1]), given[None]  # type: ignore[index]

    def held_out(self, documents: Sequence[NDArray[np.int64]]) -> Documents:
        """Group documents of similar length."""
        (part,), (most, words) = documents, _EVALUATED_WORDS
        part = part[np.argsort(self._sizes[part], kind="stable")]
        number = np.maximum(np.cumsum(self._sizes[part]) // words, np.arange(len(part)) // (most - 1))
        runs = np.split(part, np.flatnonzero(np.diff(number)) + 1)
        return table([[run[k : k + most - 1] for run in runs for k in range(0, len(run), most - 1)]], most - 1)


BatchSource = DynamicBatches | StaticGraphBatches | StaticSequenceBatches


def largest_first(steps: Sequence[Step]) -> list[Step]:
    """Return one step of each shape, the largest first: recordings of the others fit into its memory."""
    result = {shape: given for given, shape in steps}

    def size(shape: Hashable) -> int:
        return shape.nodes if isinstance(shape, BatchShape) else prod(shape[1]) if shape else 0  # type: ignore[index]

    return [(result[shape], shape) for shape in sorted(result, key=size, reverse=True)]


def _on_device(documents: NDArray[np.int64], device: torch.device) -> Tensor:
    on_host = torch.from_numpy(documents)
    if device.type == "cuda":  # a copy from pinned memory does not wait for the epoch that is running
        on_host = on_host.pin_memory()
    return on_host.to(device, non_blocking=True)


class Targets:
    """Targets and weights of each model's documents."""

    def __init__(self, examples: Sequence[Examples]) -> None:
        n = max(len(part.corpus) for part in examples)
        self._targets = examples[0].targets.new_zeros(len(examples), n, *examples[0].targets.shape[1:])
        self._weights = examples[0].weights.new_zeros(len(examples), n)
        self.set(examples)

    def set(self, examples: Sequence[Examples]) -> None:
        """Replace them by those of other examples, in place."""
        self._weights.zero_()
        self.documents = [part.documents.cpu().numpy() for part in examples]
        for model, part in enumerate(examples):
            self._targets[model, part.documents] = part.targets
            self._weights[model, part.documents] = part.weights

    def look_up(self, documents: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return targets, weights, and 1 for real documents: (models, slots) each."""
        real = documents >= 0
        asked = documents.clamp(min=0).long()
        weights = torch.where(real, self._weights.gather(1, asked), 0.0)
        if self._targets.ndim == 2:
            return self._targets.gather(1, asked), weights, real.to(weights.dtype)
        models = torch.arange(asked.shape[0], device=asked.device)[:, None]
        return self._targets[models, asked], weights, real.to(weights.dtype)
