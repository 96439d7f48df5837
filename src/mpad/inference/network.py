"""MPAD at prediction without torch: the equations of `mpad.model` in NumPy.

Where compiled code is available, `mpad.inference.fused` computes the graphs of words; NumPy computes the rest, and
everything in the rare ablations that C does not support. Equation numbers are the paper's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.config import MPADConfig
from mpad.graph.packed import PackedGraphs, take_documents
from mpad.inference.fused import Floats, FusedWords, Weights, batch_norm, fused_words
from mpad.linear.potentials import Potentials
from mpad.text.vocabulary import SPARE_ROWS, piece_means

_NODES = 4_096  # words computed together


@dataclass(frozen=True)
class Answer:
    """Predictions: logits, document vectors and attention, in the order of the documents."""

    logits: Floats  # (n_documents, n_classes)
    vectors: Floats  # (n_documents, document_width), the document vectors that the last layer classifies
    word_attention: Floats | None  # (steps, n_nodes), sums to 1 over the words of a graph
    sentence_attention: Floats | None  # (steps or 1, n_graphs), sums to 1 over the sentences of a document
    member_logits: Floats | None = None  # (members, n_documents, n_classes), of an ensemble

    def with_potentials(self, potentials: Potentials | None, graphs: PackedGraphs) -> "Answer":
        """Return the answer of the whole model, given its linear part: this is the network's."""
        if potentials is None:
            return self
        linear, members = potentials.logits(graphs), self.member_logits
        together = None if members is None else potentials.add_network(members, linear)
        return replace(self, logits=potentials.add_network(self.logits, linear), member_logits=together)


def join(answers: list[Answer]) -> Answer:
    """Concatenate the predictions of some documents and the next ones."""
    if len(answers) == 1:
        return answers[0]

    def along(axis: int, name: str) -> Any:
        parts = [getattr(answer, name) for answer in answers]
        return None if parts[0] is None else np.concatenate(parts, axis)

    attention = along(1, "word_attention"), along(1, "sentence_attention")
    return Answer(along(0, "logits"), along(0, "vectors"), *attention, along(1, "member_logits"))


def new_rows(vectors: NDArray[np.floating], new_words: Sequence[Sequence[int]]) -> Floats:
    """Return the vectors of new words, the means of their pieces': (words, width)."""
    return piece_means(lambda ids: vectors[ids], new_words, vectors.shape[1])


def segment_sum(x: Floats, start: NDArray[np.int64]) -> Floats:
    """Sum runs of consecutive rows: run g has the rows start[g]:start[g + 1]."""
    total = np.zeros((len(start) - 1, *x.shape[1:]), np.float32)
    filled = np.flatnonzero(np.diff(start))  # reduceat has no empty runs
    if len(filled):
        total[filled] = np.add.reduceat(x, start[filled], axis=0)
    return total


def segment_softmax(score: Floats, start: NDArray[np.int64]) -> Floats:
    """Softmax within runs of consecutive rows: (rows,) → (rows,)."""
    size = np.diff(start)
    filled = np.flatnonzero(size)
    if not len(filled):
        return score
    e = np.exp(score - np.maximum.reduceat(score, start[filled]).repeat(size[filled]))
    return np.asarray(e / segment_sum(e, start).repeat(size), np.float32)


class WordGraph:
    """Word graphs; rows are the words of all graphs, then a master node per graph."""

    def __init__(self, graphs: PackedGraphs, config: MPADConfig) -> None:
        self.start, self.master, self._mean = graphs.node_start, config.master_node, config.renormalise
        self.owner = np.repeat(np.arange(graphs.n_graphs), np.diff(self.start))
        first = np.repeat(self.start[:-1], np.diff(graphs.edge_start))
        self._source, self._weight = graphs.source + first, graphs.weight[:, None]
        n = len(graphs.words)
        self._edges = np.searchsorted(graphs.target + first, np.arange(n + 1))  # edges are sorted by target
        degree = np.bincount(graphs.target + first, graphs.weight, n)[:, None] + self.master
        self._degree = np.maximum(degree, np.finfo(np.float32).tiny).astype(np.float32)

    def aggregate(self, x: Floats) -> Floats:
        """Return D⁻¹ A x (eq. 4): (words [+ masters], width)."""
        n = len(self.owner)
        received = segment_sum(x[self._source] * self._weight, self._edges)
        if self.master:
            received += x[n:][self.owner]
        if self._mean:
            received /= self._degree
        if not self.master:
            return received
        inbox = segment_sum(x[:n], self.start)
        return np.concatenate([received, inbox / np.maximum(np.diff(self.start), 1)[:, None] if self._mean else inbox])


class SentenceGraph:
    """The sentences of each document: a clique, or a path from the first to the last. It has no master node."""

    master = False

    def __init__(self, start: NDArray[np.int64], config: MPADConfig) -> None:
        self.start, self._path, self._mean = start, config.variant == "path", config.renormalise
        self.owner = np.repeat(np.arange(len(start) - 1), np.diff(start))

    def aggregate(self, x: Floats) -> Floats:
        """Receive from the previous sentence (path) or the mean of all others (clique): (sentences, width)."""
        if self._path:
            follows = np.diff(self.owner, prepend=-1) == 0
            return np.asarray(np.roll(x, 1, axis=0) * follows[:, None])
        others = np.asarray(segment_sum(x, self.start)[self.owner] - x)
        if self._mean:
            others /= np.maximum(np.diff(self.start) - 1, 1)[self.owner, None]
        return others


class Network:
    """A trained MPAD. `vectors` (n_words, vector_width) may be float16, or mapped from a file."""

    device = "cpu"

    def __init__(self, config: MPADConfig, weights: Weights, vectors: NDArray[np.floating]) -> None:
        self.config, self.weights, self.vectors = config, weights, vectors
        self.by_sentence = config.hierarchical

    @cached_property
    def _fused(self) -> FusedWords | None:
        return fused_words(self.config, self.weights, self.vectors)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_fused"}  # C pointers cannot be copied

    # Overflow is reported by Labels, from the final logits. "invalid": OpenBLAS's product of a few rows of 5 numbers
    # with a vector (AVX-512) also computes in lanes that it never filled; leftovers there do not reach the sums.
    @np.errstate(invalid="ignore", over="ignore")
    def answer(self, graphs: PackedGraphs) -> Answer:
        """Predict every document."""
        spare = new_rows(self.vectors, graphs.new_words) if graphs.new_words and graphs.features is None else None
        if self._fused is not None:
            return self._classify(graphs, *self._fused.read(graphs, spare))
        number = np.cumsum(graphs.document_sizes()) // _NODES
        parts = np.split(np.arange(len(graphs)), np.flatnonzero(np.diff(number)) + 1)
        return join([self._answer(take_documents(graphs, documents), spare) for documents in parts])

    def _answer(self, graphs: PackedGraphs, spare: Floats | None) -> Answer:
        graph = WordGraph(graphs, self.config)
        h = self._embed(graphs, spare)
        return self._classify(graphs, *self._encode("words", h, graph, self.config.steps))

    def _embed(self, graphs: PackedGraphs, spare: Floats | None) -> Floats:
        """H⁰: the vector of each word, then a zero row per master node."""
        rows = (self.vectors[graphs.words] if graphs.features is None else graphs.features).astype(np.float32)
        if spare is not None:
            place = graphs.words - (len(self.vectors) - SPARE_ROWS)
            new = (place >= 0) & (place < len(spare))
            rows[new] = spare[place[new]]
        return np.pad(rows, ((0, graphs.n_graphs), (0, 0))) if self.config.master_node else rows

    def _classify(self, graphs: PackedGraphs, vectors: Floats, attention: Floats) -> Answer:
        """Classify documents, given the vectors of their word graphs."""
        config, sentences = self.config, None
        if self.by_sentence:
            rounds = 0 if config.variant == "sentence-att" else config.steps
            graph = SentenceGraph(graphs.document_start, config)
            vectors, sentences = self._encode("sentences", vectors, graph, rounds)
        return Answer(self._linear("classes", vectors), vectors, attention, sentences)

    def _encode(self, level: str, h: Floats, graph: WordGraph | SentenceGraph, rounds: int) -> tuple[Floats, Floats]:
        """H⁰ → vectors (n, document_width), attention (rounds, rows without masters)."""
        states, mean = [] if rounds else [h], []
        if level == "words" and self.config.read_words:
            count = np.maximum(np.diff(graph.start), 1)[:, None]
            mean = [(segment_sum(h[: len(graph.owner)], graph.start) / count).astype(np.float32)]
        for t in range(rounds):
            states.append(h := self._message_passing(f"{level}.rounds.{t}", h, graph))
        return self._readout(f"{level}.readout", states, graph, mean)

    def _message_passing(self, name: str, h: Floats, graph: WordGraph | SentenceGraph) -> Floats:
        """AGGREGATE (eq. 4) and COMBINE (eqs. 5, 6): (rows, width) → (rows, hidden)."""
        if self.config.mlp_before:
            h = relu(self._norm(f"{name}.before_norm", self._linear(f"{name}.before1", h)))
            h = self._linear(f"{name}.before2", h)
        m = relu(self._norm(f"{name}.mlp_norm", self._linear(f"{name}.mlp1", graph.aggregate(h))))
        m = self._linear(f"{name}.mlp2", m)
        m = relu(m) if self.config.mlp_relu else m
        if self.config.combine == "identity":
            return m
        if f"{name}.project.weight" in self.weights:
            h = self._linear(f"{name}.project", h)
        d = self.config.hidden
        of_message = self._linear(f"{name}.gate.from_message", m)
        gates = sigmoid(of_message[:, : 2 * d] + self._linear(f"{name}.gate.from_state", h))
        reset, update = np.split(gates, 2, axis=1)
        candidate = np.tanh(of_message[:, 2 * d :] + self._linear(f"{name}.gate.from_reset", reset * h))
        return np.asarray(h + update * (candidate - h))

    def _readout(
        self, name: str, states: list[Floats], graph: WordGraph | SentenceGraph, mean: list[Floats]
    ) -> tuple[Floats, Floats]:
        """READOUT (eqs. 7, 8) of every round, and of the mean word vector."""
        parts, alphas = [], []
        for t, h in enumerate(states):
            words, masters = np.split(h, [len(graph.owner)])
            if graph.master and not self.config.master_skip:
                u, alpha = self._attention_with_masters(f"{name}.attention.{t}", words, masters, graph.start)
            else:
                u, alpha = self._attention(f"{name}.attention.{t}", words, graph.start)
            parts += [u, masters] if graph.master and self.config.master_skip else [u]
            alphas.append(alpha)
        read = self._norm(f"{name}.norm", np.concatenate([*parts, *mean], axis=1))
        return relu(self._linear(f"{name}.dense", read)), np.stack(alphas)

    def _attention(self, name: str, h: Floats, start: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """α = softmax(v · tanh(W_A H)), u = Σ α H (eq. 7)."""
        score = self._linear(f"{name}.context", np.tanh(self._linear(f"{name}.align", h)))[:, 0]
        alpha = segment_softmax(np.tanh(score) if self.config.score_tanh else score, start)
        u = segment_sum(alpha[:, None] * h, start)
        return relu(self._linear(f"{name}.dense", u)) if self.config.attention_dense else u, alpha

    def _attention_with_masters(
        self, name: str, words: Floats, masters: Floats, start: NDArray[np.int64]
    ) -> tuple[Floats, Floats]:
        """Attend to each graph's words and its master, which is a node like the others; return the words' attention."""
        h = np.insert(words, start[1:], masters, axis=0)
        u, alpha = self._attention(name, h, start + np.arange(len(start)))
        return u, np.delete(alpha, start[1:] + np.arange(len(start) - 1))

    def _linear(self, name: str, x: Floats) -> Floats:
        y: Floats = x @ np.asarray(self.weights[f"{name}.weight"], np.float32).T
        return y + self.weights[f"{name}.bias"] if f"{name}.bias" in self.weights else y

    def _norm(self, name: str, x: Floats) -> Floats:
        """Batch norm by running averages; the identity where the network has none."""
        if f"{name}.weight" not in self.weights:
            return x
        scale, shift = batch_norm(self.weights, name)
        return x * scale + shift


def relu(x: Floats) -> Floats:
    """Return max(x, 0)."""
    return np.maximum(x, 0)


def sigmoid(x: Floats) -> Floats:
    """Return 1 / (1 + exp(−x)), which cannot overflow in this form."""
    return np.asarray(0.5 * np.tanh(0.5 * x) + 0.5)


class Ensemble:
    """The mean of several networks; `weights` and `vectors` have the names and shapes of a model folder."""

    def __init__(self, config: MPADConfig, weights: Weights, vectors: NDArray[np.floating]) -> None:
        self.config, self.weights, self.vectors = config, weights, vectors
        self.by_sentence = config.hierarchical
        one, width = replace(config, members=1), config.vector_width
        self._members = []
        for k in range(config.members):
            at = f"members.{k}."
            own = {name.removeprefix(at): value for name, value in weights.items() if name.startswith(at)}
            table = np.ascontiguousarray(vectors[:, k * width : (k + 1) * width]) if config.learn_vectors else vectors
            self._members.append(Network(one, own, table))

    def answer(self, graphs: PackedGraphs) -> Answer:
        """Predict every document."""
        answers = [member.answer(graphs) for member in self._members]

        def stacked(name: str) -> Any:
            return np.stack([getattr(answer, name) for answer in answers])

        each, words = stacked("logits"), stacked("word_attention").mean(0)
        sentences = stacked("sentence_attention").mean(0) if self.by_sentence else None
        return Answer(each.mean(0), np.concatenate([answer.vectors for answer in answers], 1), words, sentences, each)


def make_network(config: MPADConfig, weights: Weights, vectors: NDArray[np.floating]) -> Network | Ensemble:
    """Build a trained network or ensemble from its weights."""
    return (Network if config.members == 1 else Ensemble)(config, weights, vectors)
