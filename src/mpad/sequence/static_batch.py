"""Batches of static shapes, cut out on a GPU without asking it how long anything is.

A step that is recorded once and replayed needs tensors of the same shape each time. So sizes are rounded up, and what
only fills up belongs to a dummy document, the last of the batch.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpad.graph.batch import CorpusTensors, GraphBatch
from mpad.sequence.batch import SequenceShape, WordBatch, WordTensors, owners

_LOOSE = 1.5  # a recorded step serves batches down to this part of its size
_Shape = TypeVar("_Shape", bound=tuple[int, ...])


class GraphShape(NamedTuple):
    """The capacity of a batch of graphs."""

    nodes: int
    edges: int


class StaticWords:
    """Cuts batches of words in their order."""

    def __init__(self, corpus: WordTensors) -> None:
        self._corpus = corpus
        self._length = corpus.n_words.cpu().numpy()
        self._count = corpus.n_sentences.cpu().numpy()
        owner = np.repeat(np.arange(len(corpus)), self._count)
        self._longest_sentence = np.zeros(len(corpus), np.int64)
        np.maximum.at(self._longest_sentence, owner, corpus.sentence_length.cpu().numpy())

    def shape(self, documents: NDArray[np.int64]) -> SequenceShape:
        """Room for these documents."""
        length, count = self._length[documents], self._count[documents]
        longest, most = round_up(length.max()), round_up(count.max())
        sentence = round_up(self._longest_sentence[documents].max())
        if most == 1:  # sentences are documents
            return SequenceShape(longest * len(documents), longest, len(documents), longest, 1)
        return SequenceShape(round_up(length.sum()), longest, round_up(count.sum()), sentence, most)

    def batch(self, documents: Tensor, shape: tuple[int, ...]) -> WordBatch:
        """Cut out these documents."""
        known, corpus = SequenceShape(*shape), self._corpus
        real, row = documents >= 0, documents.clamp(min=0)
        length, count = corpus.n_words[row] * real, corpus.n_sentences[row] * real
        words, is_word, _ = filled_members(corpus.first_word[row], length, known.words)
        sentences, is_sentence, _ = filled_members(corpus.first_sentence[row], count, known.sentences)
        lengths = corpus.sentence_length[sentences] * is_sentence
        return WordBatch(corpus.words[words].long() * is_word, length, lengths, count, known)


class StaticGraphs:
    """Cuts batches of graphs, one a document."""

    def __init__(self, corpus: CorpusTensors) -> None:
        self._corpus = corpus
        graphs = corpus.first_graph
        self._n_nodes, self._n_edges = corpus.n_nodes[graphs].cpu().numpy(), corpus.n_edges[graphs].cpu().numpy()

    def shape(self, documents: NDArray[np.int64]) -> GraphShape:
        """Room for these documents' graphs, and a node for edges that only fill up."""
        nodes, edges = self._n_nodes[documents].sum() + 1, self._n_edges[documents].sum()
        return GraphShape(round_up(nodes), round_up(edges))

    def batch(self, documents: Tensor, shape: tuple[int, ...]) -> GraphBatch:
        """Cut out these documents."""
        known, corpus = GraphShape(*shape), self._corpus
        real, row = documents >= 0, documents.clamp(min=0)
        graph = corpus.first_graph[row]
        size, edge_count = corpus.n_nodes[graph] * real, corpus.n_edges[graph] * real
        nodes, is_node, owner = filled_members(corpus.first_node[graph], size, known.nodes)
        edges, is_edge, edge_owner = filled_members(corpus.first_edge[graph], edge_count, known.edges)
        last = len(documents) - 1
        shift = (size.cumsum(0) - size)[edge_owner]
        every = torch.arange(len(documents), device=documents.device)

        def end(x: Tensor) -> Tensor:
            return torch.where(is_edge, x[edges] + shift, known.nodes - 1)

        return GraphBatch(
            words=corpus.words[nodes].long() * is_node,
            owner=owner,
            size=torch.where(every == last, known.nodes - size.sum(), size),
            source=end(corpus.source),
            target=end(corpus.target),
            weight=corpus.weight[edges] * is_edge,
            graph_owner=every,
            graph_count=torch.ones_like(every),
        )


def filled_members(first: Tensor, count: Tensor, total: int) -> tuple[Tensor, Tensor, Tensor]:
    """Members of runs that begin at `first` and are `count` long, filled up with 0 to `total`.

    With them, which are real, and the run that each belongs to: the last for those that only fill up.
    """
    owner = owners(count, total)
    real, owner = owner < count.shape[0], owner.clamp(max=count.shape[0] - 1)
    member = torch.arange(total, device=first.device) + (first - (count.cumsum(0) - count))[owner]
    return torch.where(real, member, 0), real, owner


def round_up(n: int | np.integer) -> int:
    """The next of four sizes an octave: at most a quarter is wasted."""
    n = max(int(n), 1)
    step = max(1 << (n - 1).bit_length() >> 3, 1)
    return -(-n // step) * step


def find_shape(shape: _Shape, recorded: Iterable[_Shape]) -> _Shape | None:
    """The smallest recorded room that holds this one and is not much larger in any way."""

    def holds(other: _Shape) -> bool:
        return all(a <= b <= a * _LOOSE for a, b in zip(shape, other, strict=True))

    return min(filter(holds, recorded), default=None)
