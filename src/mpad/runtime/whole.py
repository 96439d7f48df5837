"""The level of words in one compiled call: packed graphs → what its readouts give, without a step back into Python."""

from ctypes import POINTER, Structure, addressof, c_long
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad import native
from mpad.graph.packed import PackedGraphs
from mpad.models.config import MPADConfig
from mpad.native import at
from mpad.runtime.answer import Floats
from mpad.runtime.compiled import arrays_of
from mpad.runtime.fold import FoldedLevel, Read, Step
from mpad.runtime.maps import Affine
from mpad.runtime.table import WordTable

_ROWS = 256  # answered together: what lies between two rounds stays in the cache


class _Step(Structure):
    _fields_ = native.fields(
        "enter enter_b second second_b sent u u_b bias hear hear_b gates candidate candidate_b reset"
    )


class _Read(Structure):
    _fields_ = native.fields("align align_b context dense dense_b")


class _Answers(Structure):
    _fields_ = native.fields(
        "node_start edge_start words source target weight says states gates told_gates told_new steps reads "
        "read alpha scratch",
        "n width nobody master mean relu nodes rows",
    )


def whole_level(config: MPADConfig, level: FoldedLevel, table: WordTable) -> "WholeLevel | None":
    """The level as one call; None where that was not built, or does not do what this network does."""
    gated, apart = config.combine == "gru", config.master_node and not config.master_skip
    if native.library is None or not native.fits(config.hidden) or not gated or apart or not level.steps:
        return None
    return WholeLevel(config, level, table)


class WholeLevel:
    """A level's weights and tables as C reads them; several threads may ask it at once."""

    def __init__(self, config: MPADConfig, level: FoldedLevel, table: WordTable) -> None:
        self._config = config
        library: Any = native.library
        self._library = library
        library.mpad_answers.argtypes = [POINTER(_Answers), c_long, c_long]
        self._arrays: list[NDArray[Any]] = []  # that C points to
        entered, told = table.tables
        self._tables = [self._at(part) for part in entered], [self._at(part) for part in told] or [None, None]
        self._nobody = len(entered[0]) - 1
        self._steps, self._reads = (_Step * len(level.steps))(), (_Read * len(level.reads))()
        for number, (step, read) in enumerate(zip(level.steps, level.reads, strict=True)):
            self._steps[number] = _Step(*[self._at(part) for part in _step_parts(step, number == 0)])
            self._reads[number] = _Read(*[self._at(part) for part in _read_parts(read)])

    def _at(self, array: NDArray[Any] | None) -> int | None:
        if array is None:
            return None
        held = np.ascontiguousarray(array, np.float32)
        self._arrays.append(held)
        return at(held)

    def prepare(self, graphs: PackedGraphs) -> "WholeAnswers":
        """Room for the answers on these graphs, whose words the table knows."""
        words = graphs.words
        if len(words) and (words.min() < 0 or words.max() >= self._nobody):
            raise IndexError(
                f"words are numbered 0 to {self._nobody - 1}, but these graphs have {words.min()} to {words.max()}"
            )
        return WholeAnswers(self, graphs)


def _step_parts(step: Step, first: bool) -> list[Floats | None]:
    u, candidate = step.enter.gates, step.candidate
    assert u is not None and step.gates is not None and candidate is not None  # as `whole_level` has seen
    parts = [*_affine(None), *_affine(None), None, None, None]  # what the first step's words enter with is in the table
    if not first:
        before = step.enter.before or (None, None)
        parts = [*_affine(before[0]), *_affine(before[1]), step.enter.sent.w, u.w, u.b]
    return [*parts, step.bias.row, *_affine(step.hear), step.gates.w, candidate.w, candidate.b, step.reset]


def _read_parts(read: Read) -> list[Floats | None]:
    return [read.align.w, read.align.b, read.context, *_affine(read.dense)]


def _affine(of: Affine | None) -> tuple[Floats | None, Floats | None]:
    return (None, None) if of is None else (of.w, of.b)


class WholeAnswers:
    """Answers on some graphs, part by part: what readouts give (graphs, width of all), attention (steps, nodes)."""

    def __init__(self, level: WholeLevel, graphs: PackedGraphs) -> None:
        config, self._level = level._config, level
        self._arrays = arrays_of(graphs)
        starts, width, n = self._arrays[0], config.hidden, len(level._steps)
        graph_count, nodes = len(starts) - 1, len(self._arrays[2])
        self.read = np.empty((graph_count, n * width * (2 if config.master_node else 1)), np.float32)
        self.attention = np.empty((n, nodes), np.float32)
        largest = int(np.diff(starts).max(initial=0)) + 1
        self._rows = max(_ROWS, largest)
        self._shape = n, width, level._nobody, config.master_node, config.renormalise, not config.authors, nodes

    def answer(self, first: int, last: int) -> None:
        """Fill in those of graphs first … last − 1."""
        level, width = self._level, self._shape[1]
        scratch = np.empty(self._rows * (8 * width + 4), np.float32)
        (says, states, gates), (told_gates, told_new) = level._tables
        tables = says, states, gates, told_gates, told_new, addressof(level._steps), addressof(level._reads)
        room = at(self.read), at(self.attention), at(scratch)
        of = _Answers(*[at(array) for array in self._arrays], *tables, *room, *self._shape, self._rows)
        level._library.mpad_answers(of, first, last)
