"""Sums and softmax per group of consecutive rows, in NumPy."""

import numpy as np
from numpy.typing import NDArray

from mpad.inference.answer import Floats

_DENSE = 1 << 18  # entries of a (groups, rows) matrix up to which a product beats `reduceat`


class Groups:
    """Groups of consecutive rows: group g owns rows start[g]:start[g + 1]."""

    def __init__(self, start: NDArray[np.int64]) -> None:
        self.start, self.size = start, start[1:] - start[:-1]
        self.n, self.n_rows = len(self.size), int(start[-1])
        self.owner = np.repeat(np.arange(self.n), self.size)
        self._filled = np.flatnonzero(self.size)
        self._first = start[:-1][self._filled]
        self._members: Floats | None = None
        if self.n * self.n_rows <= _DENSE:
            self._members = np.zeros((self.n, self.n_rows), np.float32)
            self._members[self.owner, np.arange(self.n_rows)] = 1.0

    def sum(self, x: Floats, weight: Floats | None = None) -> Floats:
        """Return Σ weight · x over each group: (rows, width) → (groups, width)."""
        if self._members is not None:
            return np.asarray((self._members if weight is None else self._members * weight) @ x)
        total = np.zeros((self.n, x.shape[1]), np.float32)
        if len(self._filled):
            total[self._filled] = np.add.reduceat(x if weight is None else x * weight[:, None], self._first, axis=0)
        return total

    def softmax(self, score: Floats, small: bool = False) -> Floats:
        """Return exp(score) / Σ exp(score) within each group: (rows,) → (rows,). `small` scores cannot overflow."""
        if not len(score):
            return score
        size = self.size[self._filled]
        if not small:
            score = score - np.repeat(np.maximum.reduceat(score, self._first), size)
        score = np.exp(score)
        score /= np.repeat(np.add.reduceat(score, self._first), size)
        return score
