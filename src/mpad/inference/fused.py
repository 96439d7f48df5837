"""The graphs of words in compiled code: packed graphs → their vectors and attention, in one call per part of a corpus.

C takes weights that are folded into the fewest products with the same predictions. At prediction batch norm is an
affine map and dropout is the identity, so adjacent linear maps become one:

    batch norm                  into the linear map before it (a mean over neighbors between them does not matter)
    two maps without a ReLU     one map (an MLP that ends without one, and the gate behind it)
    the first round's maps      depend only on the word: a table with a row per word, filled when a word first occurs
"""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_long
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpad import native
from mpad.config import MPADConfig
from mpad.graph.packed import PackedGraphs
from mpad.text.vocabulary import SPARE_ROWS

Floats = NDArray[np.float32]
Weights = Mapping[str, NDArray[Any]]

_EPSILON = 1e-5  # of torch's batch norm
_HALF = np.float32(0.5)
_ROWS, _EDGES = 256, 1_024  # processed together, so that intermediate results stay in the cache
_PIECE = 2_000  # words per unit of work of a core
_TABLES = "sent", "states", "state_gates", "message_gates", "message_candidate"
_GRAPHS = {
    "node_start": np.int64,
    "edge_start": np.int64,
    "words": np.int32,
    "source": np.int32,
    "target": np.int32,
    "weight": np.float32,
}


def batch_norm(weights: Weights, name: str) -> tuple[Floats, Floats]:
    """Return batch norm at prediction as (scale, shift)."""
    scale = weights[f"{name}.weight"] / np.sqrt(weights[f"{name}.running_var"] + _EPSILON)
    shift = weights[f"{name}.bias"] - weights[f"{name}.running_mean"] * scale
    return scale.astype(np.float32), shift.astype(np.float32)


class Affine(NamedTuple):
    """x W + b: (rows, in) → (rows, out)."""

    w: Floats  # (in, out)
    b: Floats  # (out,)

    def __call__(self, x: Floats) -> Floats:
        """Map rows."""
        return np.asarray(x @ self.w + self.b)

    def then(self, after: "Affine") -> "Affine":
        """Return the composition of this map and the next as one map."""
        return Affine(np.ascontiguousarray(self.w @ after.w), self.b @ after.w + after.b)


def _linear(weights: Weights, name: str, norm: str | None = None) -> Affine:
    """Return the linear layer of that name, with the batch norm behind it; a missing bias is zeros."""
    w = np.ascontiguousarray(weights[f"{name}.weight"].T, np.float32)
    b = np.asarray(weights.get(f"{name}.bias", np.zeros(w.shape[1], np.float32)), np.float32)
    if norm is None:
        return Affine(w, b)
    scale, shift = batch_norm(weights, norm)
    return Affine(w * scale, b * scale + shift)


class _Round:
    """One folded round of message passing with a GRU.

    A row sends x W and receives ReLU(mean + b). Its gates get a part from its state and one from its message.
    """

    def __init__(self, weights: Weights, name: str, config: MPADConfig) -> None:
        d, norm = config.hidden, config.mlp_norm
        mlp2, gate = _linear(weights, f"{name}.mlp2"), _linear(weights, f"{name}.gate.from_message")
        gate = gate if config.mlp_relu else mlp2.then(gate)
        self.sent = _linear(weights, f"{name}.mlp1", f"{name}.mlp_norm" if norm else None)
        self.mlp2 = mlp2 if config.mlp_relu else None  # with a ReLU; without one it was merged into `gate`
        self.gate = gate.w  # message → (3 · width): reset, update, candidate
        self.candidate_bias = gate.b[2 * d :]
        self.state_gates = Affine(_linear(weights, f"{name}.gate.from_state").w, gate.b[: 2 * d])
        self.reset = _linear(weights, f"{name}.gate.from_reset").w
        self.before: tuple[Affine, ...] = ()  # an MLP before the mean; its output is the state
        self.project: Floats | None = None  # maps word vectors to states, in the first round
        if config.mlp_before:
            first = _linear(weights, f"{name}.before1", f"{name}.before_norm" if norm else None)
            self.before = first, _linear(weights, f"{name}.before2")
        elif f"{name}.project.weight" in weights:
            self.project = _linear(weights, f"{name}.project").w
            self.state_gates = Affine(self.project, np.zeros(d, np.float32)).then(self.state_gates)

    def enter(self, h: Floats) -> tuple[Floats, Floats, Floats]:
        """Return what rows send, their states, and the states' part in the gates."""
        if self.before:
            h = self.before[1](np.maximum(self.before[0](h), 0))
        return h @ self.sent.w, h if self.project is None else h @ self.project, self.state_gates(h)

    def message(self, mean: Floats) -> tuple[Floats, Floats]:
        """Return the parts of messages in the gates and in the candidate, given the mean of what rows receive."""
        m, d = np.maximum(mean + self.sent.b, 0), len(self.reset)
        if self.mlp2 is not None:
            m = np.maximum(self.mlp2(m), 0)
        return m @ self.gate[:, : 2 * d], m @ self.gate[:, 2 * d :] + self.candidate_bias

    def arrays(self, first: bool) -> dict[str, Floats | None]:
        """Return the fields of C's `inference_step`. What the table of words holds is left out of the first round."""
        d = len(self.reset)
        state = Affine(np.zeros((d, 2 * d), np.float32), np.zeros(2 * d, np.float32)) if first else self.state_gates
        maps = [self.gate, state.w, self.reset] + ([] if self.mlp2 is None else [self.mlp2.w])
        fields: dict[str, Floats | None] = {
            "mlp1_b": self.sent.b,
            "update": np.concatenate([_in_panels(w).ravel() for w in maps]),
            "bias": np.concatenate([state.b, self.candidate_bias]),
            "mlp2_b": None if self.mlp2 is None else self.mlp2.b,
        }
        if not first:
            fields["mlp1"] = _in_panels(self.sent.w)
            for name, affine in zip(("before1", "before2"), self.before, strict=False):
                fields |= {name: _in_panels(affine.w), f"{name}_b": affine.b}
        return fields


def _in_panels(w: Floats) -> Floats:
    """Lay out weights (in, out) as `transpose` in native/gemm.h does."""
    if len(w) % native.PANEL:
        return w
    return w.reshape(len(w), -1, native.PANEL).swapaxes(0, 1)


def fused_words(config: MPADConfig, weights: Weights, vectors: NDArray[np.floating]) -> "FusedWords | None":
    """Return the encoder of word graphs in C; None if it was not compiled or does not support this network."""
    native.report_missing()
    gated, apart = config.combine == "gru", config.master_node and not config.master_skip
    supported = gated and not apart and not config.contextual
    if native.library is None or not supported or not native.fits(config.hidden):
        return None
    return FusedWords(config, weights, vectors)


class FusedWords:
    """The weights of the word level and the table of words as C structures; several threads may use them at once."""

    def __init__(self, config: MPADConfig, weights: Weights, vectors: NDArray[np.floating]) -> None:
        self._config, self._vectors, self._spare = config, vectors, Lock()
        self._library: Any = native.library
        self._arrays: list[NDArray[Any]] = []  # C has pointers to them
        rounds = [_Round(weights, f"words.rounds.{t}", config) for t in range(config.steps)]
        self._first = rounds[0]
        self._make_table(len(vectors), vectors.shape[1])
        self._steps = (native.structures["inference_step"] * config.steps)()
        self._attention = (native.structures["inference_attention"] * config.steps)()
        for t, folded in enumerate(rounds):
            self._steps[t] = self._pack("inference_step", folded.arrays(t == 0))
            self._attention[t] = self._pack("inference_attention", _attention_arrays(weights, t, config))
        scale, shift = batch_norm(weights, "words.readout.norm")
        dense = _linear(weights, "words.readout.dense")
        self._dense = Affine(scale[:, None] * dense.w, shift @ dense.w + dense.b)

    def _pack(self, structure: str, arrays: Mapping[str, Floats | None]) -> Any:
        kept = {name: None if x is None else np.ascontiguousarray(x, np.float32) for name, x in arrays.items()}
        self._arrays += [x for x in kept.values() if x is not None]
        return native.pack(structure, **kept)

    # ── The table of words ──

    def _make_table(self, n_words: int, vector_width: int) -> None:
        """Make a table with a row per word. The last row is the master's; as a predecessor it means no word."""
        config = self._config
        master = self._first.enter(np.zeros((1, vector_width), np.float32))
        self._master_sends, self._master_row = master[0], n_words
        # With one incoming edge, of weight 1, a row's message is the mean of a word and the master.
        self._has_messages = config.master_node and config.renormalise
        rows = [*master, *(self._first.message(master[0]) if self._has_messages else ())]
        tables = [np.empty((n_words + 1, row.shape[1]), np.float32) for row in rows]
        for table, row in zip(tables, rows, strict=True):
            table[-1] = row
        self._tables = dict(zip(_TABLES, tables, strict=False))
        self._means = np.empty((n_words, vector_width), np.float32) if config.read_words else None
        self._known = np.zeros(n_words + 1, bool)
        self._known[-1] = True

    def _look_up(self, words: NDArray[np.integer]) -> None:
        """Compute the rows of words that occur for the first time."""
        if len(words) and (words.min() < 0 or words.max() >= self._master_row):
            raise IndexError(
                f"words are numbered 0 to {self._master_row - 1}, but these graphs have {words.min()} to {words.max()}"
            )
        known = self._known.take(words)
        if not known.all():
            new = np.unique(words[~known])
            self._set_rows(new, self._vectors[new].astype(np.float32))

    def _set_rows(self, words: NDArray[np.integer], vectors: Floats) -> None:
        rows = self._first.enter(vectors)
        messages = self._first.message((rows[0] + self._master_sends) * _HALF) if self._has_messages else ()
        for table, row in zip(self._tables.values(), [*rows, *messages], strict=True):
            table[words] = row
        if self._means is not None:
            self._means[words] = vectors
        self._known[words] = True

    # ── Prediction ──

    def read(self, graphs: PackedGraphs, spare: Floats | None) -> tuple[Floats, Floats]:
        """Return vectors (graphs, document_width) and attention (steps, nodes). `spare`: vectors of the new words."""
        if spare is None:
            return self._read(graphs)
        with self._spare:  # one corpus at a time uses the spare rows
            first = len(self._vectors) - SPARE_ROWS
            self._set_rows(np.arange(first, first + len(spare)), spare)
            return self._read(graphs)

    def _read(self, graphs: PackedGraphs) -> tuple[Floats, Floats]:
        """Call C once per part, on all cores."""
        config = self._config
        self._look_up(graphs.words)
        arrays = {name: np.ascontiguousarray(getattr(graphs, name), kind) for name, kind in _GRAPHS.items()}
        starts, nodes, width = arrays["node_start"], len(graphs.words), config.hidden
        columns = config.steps * width * (2 if config.master_node else 1)
        more = 0 if self._means is None else self._means.shape[1]
        read = np.empty((graphs.n_graphs, columns + more), np.float32)
        attention = np.empty((config.steps, nodes), np.float32)
        rows, edges = _capacity(starts, _ROWS), _capacity(arrays["edge_start"], _EDGES)
        flags = {"master": config.master_node, "mean": config.renormalise, "bounded": config.score_tanh}
        sizes = {"width": width, "n_steps": config.steps, "nodes": nodes, "rows": rows, "edges": edges}
        sizes |= {"vector_width": more}
        args = native.pack(
            "inference", **arrays, **self._tables, steps=self._steps, attention=self._attention, read=read,
            alpha=attention, vectors=self._means, master_row=self._master_row, relu=config.mlp_relu, **flags, **sizes,
        )  # fmt: skip

        def run(part: tuple[int, int]) -> None:
            scratch = np.empty(rows * (7 * width + 6) + 5 * edges, np.float32)
            own = type(args).from_buffer_copy(args)
            own.scratch = native.at(scratch)
            self._library.mpad_infer(byref(own), c_long(part[0]), c_long(part[1]))

        cuts = starts.searchsorted(np.arange(_PIECE, int(starts[-1]), _PIECE))
        parallel_map(run, list(pairwise(sorted({0, *cuts.tolist(), graphs.n_graphs}))))
        return np.maximum(self._dense(read), 0), attention


def _attention_arrays(weights: Weights, t: int, config: MPADConfig) -> dict[str, Floats | None]:
    """Return the fields of C's `inference_attention`."""
    name = f"words.readout.attention.{t}"
    maps = [_linear(weights, f"{name}.{part}") for part in ("align", "dense")[: 1 + config.attention_dense]]
    return {
        "maps": np.concatenate([_in_panels(affine.w).ravel() for affine in maps]),
        "align_b": maps[0].b,
        "context": weights[f"{name}.context.weight"][0],
        "dense_b": maps[1].b if config.attention_dense else None,
    }


def _capacity(starts: NDArray[np.int64], usual: int) -> int:
    """Return the largest chunk that C may have to process, with a row to spare."""
    return usual if starts[-1] < usual else max(usual, int(np.diff(starts).max()) + 1)


Part = TypeVar("Part")
Result = TypeVar("Result")

_pool: ThreadPoolExecutor | None = None


def cores() -> int:
    """Return the number of cores of this process, limited by OMP_NUM_THREADS if it is set."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return max(1, min(there, int(wanted))) if wanted.isdecimal() else there


def parallel_map(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Apply `work` to all parts in parallel; return the results in order."""
    global _pool
    if len(parts) < 2 or cores() < 2:
        return [work(part) for part in parts]
    try:
        if _pool is None:
            _pool = ThreadPoolExecutor(cores(), "mpad")
        result = _pool.map(work, parts)
    except RuntimeError:  # the main thread has ended, and Python starts no new threads
        return [work(part) for part in parts]
    return list(result)


def _forget() -> None:
    """Reset the pool in a forked process, which has none of its parent's threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
