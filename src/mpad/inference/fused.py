"""Fused word-level inference: packed graphs → readouts in one compiled call."""

from ctypes import byref, c_long
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad import native
from mpad.config import MPADConfig
from mpad.graph.packed import PackedGraphs
from mpad.inference.answer import Floats
from mpad.inference.fold import FoldedLevel, Read, Step
from mpad.inference.maps import Affine
from mpad.inference.table import WordTable

_ROWS = 256  # rows per block: intermediate results stay in the cache
_ENTER = "enter", "enter_b", "second", "second_b", "sent", "u", "u_b"
_STEP = *_ENTER, "bias", "mlp2", "mlp2_b", "gates", "candidate", "candidate_b", "reset"
_READ = "align", "align_b", "context", "dense", "dense_b"
_GRAPHS = "node_start", "edge_start", "words", "source", "target", "weight"


def fused_words(config: MPADConfig, level: FoldedLevel, table: WordTable) -> "FusedWords | None":
    """Build the fused level; None if it was not compiled or does not support this network."""
    native.report_missing()
    gated, apart = config.combine == "gru", config.master_node and not config.master_skip
    if native.library is None or not native.fits(config.hidden) or not gated or apart or not level.steps:
        return None
    return FusedWords(config, level, table)


class FusedWords:
    """A level's weights and tables as C reads them; safe for several threads."""

    def __init__(self, config: MPADConfig, level: FoldedLevel, table: WordTable) -> None:
        self._config = config
        library: Any = native.library
        self._library = library
        self._arrays: list[NDArray[Any]] = []  # keeps alive the arrays that C points to
        entered, messages = table.tables
        says, states, gates = map(self._held, entered)
        told_gates, told_new = map(self._held, messages) if messages else (None, None)
        self._tables = {"says": says, "states": states, "gates": gates, "told_gates": told_gates, "told_new": told_new}
        self._nobody = len(entered[0]) - 1
        self._steps = (native.structures["answer_step"] * len(level.steps))()
        self._reads = (native.structures["answer_read"] * len(level.reads))()
        for number, (step, read) in enumerate(zip(level.steps, level.reads, strict=True)):
            parts = zip(_STEP, map(self._held, _step_parts(step, number == 0)), strict=True)
            self._steps[number] = native.pack("answer_step", **dict(parts))
            self._reads[number] = native.pack(
                "answer_read", **dict(zip(_READ, map(self._held, _read_parts(read)), strict=True))
            )

    def _held(self, array: NDArray[Any] | None) -> NDArray[Any] | None:
        """Convert an array for C and keep it alive."""
        if array is None:
            return None
        self._arrays.append(np.ascontiguousarray(array, np.float32))
        return self._arrays[-1]

    def prepare(self, graphs: PackedGraphs) -> "FusedAnswers":
        """Allocate the outputs for these graphs, whose words are in the table."""
        words = graphs.words
        if len(words) and (words.min() < 0 or words.max() >= self._nobody):
            raise IndexError(
                f"words are numbered 0 to {self._nobody - 1}, but these graphs have {words.min()} to {words.max()}"
            )
        return FusedAnswers(self, graphs)


def _step_parts(step: Step, first: bool) -> list[Floats | None]:
    u, candidate = step.enter.gates, step.candidate
    assert u is not None and step.gates is not None and candidate is not None  # checked by `fused_words`
    parts = [*_affine(None), *_affine(None), None, None, None]  # the table has the first step's maps
    if not first:
        before = step.enter.before or (None, None)
        parts = [*_affine(before[0]), *_affine(before[1]), step.enter.sent.w, u.w, u.b]
    return [*parts, step.bias.row, *_affine(step.mlp2), step.gates.w, candidate.w, candidate.b, step.reset]


def _read_parts(read: Read) -> list[Floats | None]:
    return [read.align.w, read.align.b, read.context, *_affine(read.dense)]


def _affine(of: Affine | None) -> tuple[Floats | None, Floats | None]:
    return (None, None) if of is None else (of.w, of.b)


class FusedAnswers:
    """Outputs for some graphs, filled part by part: readouts (graphs, total width), attention (steps, nodes)."""

    def __init__(self, level: FusedWords, graphs: PackedGraphs) -> None:
        config, self._level = level._config, level
        self._arrays = _arrays(graphs)
        starts, width, n = self._arrays[0], config.hidden, len(level._steps)
        graph_count, nodes = len(starts) - 1, len(self._arrays[2])
        self.read = np.empty((graph_count, n * width * (2 if config.master_node else 1)), np.float32)
        self.attention = np.empty((n, nodes), np.float32)
        largest = int(np.diff(starts).max(initial=0)) + 1
        self._rows = max(_ROWS, largest)
        how = {"master": config.master_node, "mean": config.renormalise, "relu": config.mlp_relu}
        size = {"n": n, "width": width, "nobody": level._nobody, "nodes": nodes, "rows": self._rows}
        self._fields = {**how, **size, "bounded": config.score_tanh, "read": self.read, "alpha": self.attention}

    def answer(self, first: int, last: int) -> None:
        """Fill in the outputs of graphs first … last − 1."""
        level, width = self._level, self._level._config.hidden
        scratch = np.empty(self._rows * (8 * width + 4), np.float32)
        arrays = dict(zip(_GRAPHS, self._arrays, strict=True))
        weights = {"steps": level._steps, "reads": level._reads, **level._tables}
        of = native.pack("answers", **arrays, **weights, **self._fields, scratch=scratch)
        level._library.mpad_answers(byref(of), c_long(first), c_long(last))


def _arrays(graphs: PackedGraphs) -> list[NDArray[Any]]:
    """Return the arrays of graphs, in the order of _GRAPHS, as C reads them."""
    kinds = {"node_start": np.int64, "edge_start": np.int64, "weight": np.float32}
    return [np.ascontiguousarray(getattr(graphs, name), kinds.get(name, np.int32)) for name in _GRAPHS]
