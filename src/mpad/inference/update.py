"""COMBINE, equations 5 and 6: states and messages → new states."""

from dataclasses import dataclass

import numpy as np

from mpad.inference.answer import Floats
from mpad.inference.fold import Step
from mpad.inference.maps import Ints


@dataclass(frozen=True)
class Messages:
    """Messages to rows, or with a GRU their parts in the gates and in the candidate.

    With an `index`, row i receives row index[i] of `parts` or, if that is negative, row −1 − index[i] of `rest`.
    """

    parts: tuple[Floats, ...]
    index: Ints | None = None
    rest: tuple[Floats, ...] | None = None

    def rows(self) -> list[Floats]:
        """Return the message to each row."""
        if self.index is None or self.rest is None:
            return list(self.parts)
        others = np.flatnonzero(self.index < 0)
        result = [part.take(self.index, axis=0, mode="wrap") for part in self.parts]
        for part, rest in zip(result, self.rest, strict=True):
            part[others] = rest.take(-1 - self.index[others], axis=0)
        return result


def combine(step: Step, entered: tuple[Floats, ...], index: Ints | None, messages: Messages) -> Floats:
    """Return new states of all rows: (rows, width). With an `index`, row i is row index[i] of `entered`."""
    if step.reset is None:
        return messages.rows()[0]
    _, state, gates = entered
    if index is not None:
        state, gates = state.take(index, axis=0), gates.take(index, axis=0)
    told_gates, c = messages.rows()
    gates += told_gates
    np.tanh(gates, out=gates)
    gates += 1.0  # twice the gates
    width = state.shape[1]
    c += (gates[:, :width] * state) @ step.reset
    np.tanh(c, out=c)
    c -= state
    c *= gates[:, width:]
    c *= 0.5
    c += state
    return c
