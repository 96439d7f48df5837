"""Cached first-round tensors per word, which depend on the word or on the word before it.

    outgoing message, state, gate input    depend on the word
    incoming message                       depends on the word before it, if the word has one incoming edge
                                           (and on the master, whose first state is constant)

Rows are computed when a word first occurs.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.graph.packed import PackedGraphs
from mpad.inference.answer import Floats
from mpad.inference.fold import Step
from mpad.inference.maps import Ints, relu
from mpad.inference.neighbours import WordNeighbours
from mpad.inference.update import Messages
from mpad.text.vocabulary import SPARE_ROWS, piece_means


class WordTable:
    """The first step's maps of each word. The last row is the master's; as a predecessor it means no word."""

    def __init__(self, step: Step, vectors: NDArray[np.floating], averaged: bool) -> None:
        self._step, self._vectors = step, vectors
        self._known_messages = averaged and step.reset is not None  # mean over a word and the master
        master = step.enter(np.zeros((1, vectors.shape[1]), np.float32))
        self._master_says = master[0]
        messages = self._message(master[0].copy()) if self._known_messages else ()
        self._entered, self._messages = (
            [np.empty((len(vectors) + 1, part.shape[1]), np.float32) for part in parts] for parts in (master, messages)
        )
        for table, row in zip([*self._entered, *self._messages], [*master, *messages], strict=True):
            table[-1] = row
        self._known = np.zeros(len(vectors) + 1, bool)
        self._known[-1] = True

    def entered(self, index: NDArray[np.integer]) -> tuple[Floats, ...]:
        """Return the output of the step's `enter`, one row per word, after computing the rows of these words."""
        known = self._known.take(index)
        if not known.all():
            self._learn(np.unique(index[~known]))
        return tuple(self._entered)

    def _learn(self, words: NDArray[np.integer]) -> None:
        self.set_rows(words, self._vectors[words].astype(np.float32))

    def set_rows(self, words: NDArray[np.integer], vectors: Floats) -> None:
        """Compute the rows of some words from these vectors."""
        entered = self._step.enter(vectors)
        messages = self._message((entered[0] + self._master_says) * np.float32(0.5)) if self._known_messages else ()
        for table, rows in zip([*self._entered, *self._messages], [*entered, *messages], strict=True):
            table[words] = rows
        self._known[words] = True

    def _message(self, received: Floats) -> tuple[Floats, ...]:
        return self._step.message(relu(self._step.bias.add_to(received)))

    @property
    def tables(self) -> tuple[list[Floats], list[Floats]]:
        """Tables per word: outgoing message, state, gate input; and the incoming message of a successor, if known."""
        return self._entered, self._messages

    def messages(self, index: Ints, neighbours: WordNeighbours) -> Messages | None:
        """Return the messages of the first step; None if they are not in the tables."""
        if not self._known_messages:
            return None
        before = neighbours.words_before(index, nobody=len(self._known) - 1)
        rest = neighbours.rest
        before[rest] = np.arange(-1, -1 - len(rest), -1)
        received = neighbours.aggregate_relu(self._entered[0].take(index, axis=0), self._step.bias, rest)
        return Messages(tuple(self._messages), before, self._step.message(received))


class SpareRows:
    """The spare rows, for words composed of pieces; one corpus at a time uses them."""

    def __init__(self, vectors: NDArray[np.floating]) -> None:
        self._vectors, self._lock = vectors, Lock()

    @contextmanager
    def taken_by(self, graphs: PackedGraphs, table: WordTable) -> Iterator[None]:
        """Assign a table's spare rows to the new words of these graphs while the context lasts."""
        if not graphs.new_words or graphs.features is not None:
            yield
            return
        with self._lock:
            first = len(self._vectors) - SPARE_ROWS
            table.set_rows(np.arange(first, first + len(graphs.new_words)), new_rows(self._vectors, graphs.new_words))
            yield

    def __getstate__(self) -> dict[str, Any]:
        return {"_vectors": self._vectors}  # locks cannot be copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_vectors"])  # type: ignore[misc]


def new_rows(vectors: NDArray[np.floating], new_words: Sequence[Sequence[int]]) -> Floats:
    """Return the vectors of new words, the means of their pieces': (words, width)."""
    return piece_means(lambda ids: vectors[ids], new_words, vectors.shape[1])
