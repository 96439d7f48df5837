"""Fused word-level inference: packed graphs → the outputs of the readouts, in one compiled call."""

from ctypes import byref, c_long
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad import native
from mpad.config import MPADConfig
from mpad.graph.packed import PackedGraphs
from mpad.inference.answer import Floats
from mpad.inference.fold import Affine, FoldedLevel, Read, Step
from mpad.inference.layers import WordTable

_ROWS, _EDGES = 256, 1_024  # processed together, so that intermediate results stay in the cache
_STEP = "before1", "before1_b", "before2", "before2_b", "mlp1", "mlp1_b", "update", "bias", "mlp2_b"
_ATTENTION = "align", "align_b", "context", "dense", "dense_b"
_TABLES = "sent", "states", "state_gates", "message_gates", "message_candidate"
_GRAPHS = "node_start", "edge_start", "words", "source", "target", "weight"


def fused_words(config: MPADConfig, level: FoldedLevel, table: WordTable) -> "FusedWords | None":
    """Return the level as one call; None if it was not compiled or does not support this network."""
    native.report_missing()
    gated, apart = config.combine == "gru", config.master_node and not config.master_skip
    if native.library is None or not native.fits(config.hidden) or not gated or apart or not level.steps:
        return None
    return FusedWords(config, level, table)


class FusedWords:
    """A level's weights and tables as C structures; several threads may use them at once."""

    def __init__(self, config: MPADConfig, level: FoldedLevel, table: WordTable) -> None:
        self._config = config
        library: Any = native.library
        self._library = library
        self._arrays: list[NDArray[Any]] = []  # C has pointers to them
        entered, messages = table.tables
        tables = map(self._kept, [*entered, *(messages or (None, None))])
        self._tables = dict(zip(_TABLES, tables, strict=True))
        self._master_row = len(entered[0]) - 1
        self._steps = (native.structures["inference_step"] * len(level.steps))()
        self._attention = (native.structures["inference_attention"] * len(level.reads))()
        for t, (step, read) in enumerate(zip(level.steps, level.reads, strict=True)):
            self._steps[t] = self._packed("inference_step", _STEP, _step_arrays(step, t == 0))
            self._attention[t] = self._packed("inference_attention", _ATTENTION, _attention_arrays(read))

    def _packed(self, structure: str, names: tuple[str, ...], arrays: list[Floats | None]) -> Any:
        return native.pack(structure, **dict(zip(names, map(self._kept, arrays), strict=True)))

    def _kept(self, array: NDArray[Any] | None) -> NDArray[Any] | None:
        """Return the array as C reads it, and keep it alive."""
        if array is None:
            return None
        self._arrays.append(np.ascontiguousarray(array, np.float32))
        return self._arrays[-1]

    def prepare(self, graphs: PackedGraphs) -> "FusedAnswers":
        """Allocate the answers on these graphs, whose words the table knows."""
        words = graphs.words
        if len(words) and (words.min() < 0 or words.max() >= self._master_row):
            raise IndexError(
                f"words are numbered 0 to {self._master_row - 1}, but these graphs have {words.min()} to {words.max()}"
            )
        return FusedAnswers(self, graphs)


def _step_arrays(step: Step, first: bool) -> list[Floats | None]:
    state, candidate, reset = step.enter.gates, step.candidate, step.reset
    assert state is not None and step.gates is not None and candidate is not None and reset is not None
    state_w, state_b = state.w, state.b
    if first:  # already in the table
        state_w, state_b = np.zeros((len(reset), 2 * len(reset)), np.float32), np.zeros_like(state.b)
    maps = [np.concatenate([step.gates.w, candidate.w], axis=1), state_w, 2 * reset]  # C's reset gate is not doubled
    if step.mlp2 is not None:
        maps.append(step.mlp2.w)
    bias = np.concatenate([state_b, candidate.b])
    update = [np.concatenate([_in_panels(w).ravel() for w in maps]), bias, None if step.mlp2 is None else step.mlp2.b]
    if first:
        return [None] * 5 + [step.bias.row, *update]
    before = step.enter.before or (None, None)
    return [*_affine(before[0]), *_affine(before[1]), step.enter.sent.w, step.bias.row, *update]


def _attention_arrays(read: Read) -> list[Floats | None]:
    return [_in_panels(read.align.w), read.align.b, read.context, *_affine(read.dense)]


def _affine(of: Affine | None) -> tuple[Floats | None, Floats | None]:
    return (None, None) if of is None else (of.w, of.b)


def _in_panels(w: Floats) -> Floats:
    """Lay out weights (in, out) as `transpose` in native/gemm.h does."""
    if len(w) % native.PANEL:
        return w
    return w.reshape(len(w), -1, native.PANEL).swapaxes(0, 1)


class FusedAnswers:
    """Answers on some graphs: `read`, the outputs of the readouts (graphs, …), and `attention` (steps, nodes)."""

    def __init__(self, level: FusedWords, graphs: PackedGraphs) -> None:
        config, self._level = level._config, level
        self._arrays = _arrays(graphs)
        starts, edges, words = self._arrays[:3]
        width, n_steps = config.hidden, len(level._steps)
        self.read = np.empty((len(starts) - 1, n_steps * width * (2 if config.master_node else 1)), np.float32)
        self.attention = np.empty((n_steps, len(words)), np.float32)
        self._rows, self._edges = _capacity(starts, _ROWS), _capacity(edges, _EDGES)
        options = {"master": config.master_node, "mean": config.renormalise, "relu": config.mlp_relu}
        size = {"n_steps": n_steps, "width": width, "master_row": level._master_row, "nodes": len(words)}
        chunk = {"rows": self._rows, "edges": self._edges}
        self._fields = {**options, **size, **chunk, "bounded": config.score_tanh}

    def answer(self, first: int, last: int) -> None:
        """Fill in the answers on graphs first … last − 1."""
        level = self._level
        scratch = np.empty(self._rows * (7 * level._config.hidden + 6) + 5 * self._edges, np.float32)
        arrays = dict(zip(_GRAPHS, self._arrays, strict=True))
        weights = {"steps": level._steps, "attention": level._attention, **level._tables}
        results = {"read": self.read, "alpha": self.attention}
        args = native.pack("inference", **arrays, **weights, **results, **self._fields, scratch=scratch)
        level._library.mpad_infer(byref(args), c_long(first), c_long(last))


def _capacity(starts: NDArray[np.int64], usual: int) -> int:
    """Return the largest chunk that C may have to process, with a row to spare."""
    return usual if starts[-1] < usual else max(usual, int(np.diff(starts).max()) + 1)


def _arrays(graphs: PackedGraphs) -> list[NDArray[Any]]:
    """Return starts of nodes and edges; words; sources, targets and weights of edges, as C reads them."""
    kinds = {"node_start": np.int64, "edge_start": np.int64, "weight": np.float32}
    return [np.ascontiguousarray(getattr(graphs, name), kinds.get(name, np.int32)) for name in _GRAPHS]
