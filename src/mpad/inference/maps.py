"""Linear maps over rows, optimized for prediction."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mpad.inference.answer import Floats

Ints = NDArray[np.int64]
PLAIN, RELU, TANH = range(3)  # the activation after a map

_TILE = 512  # rows
_ZEROS = np.zeros(_TILE * 256, np.float32)  # np.maximum with an array is three times as fast as with a number


@dataclass(frozen=True)
class Bias:
    """A bias that is added to rows."""

    row: Floats  # (width,)

    def add_to(self, x: Floats) -> Floats:
        """Add the bias to all rows of x, in place."""
        x += self._tiled[: len(x)] if len(x) <= _TILE else self.row
        return x

    @cached_property
    def _tiled(self) -> Floats:
        """Repeated rows: adding them takes half as long as broadcasting one row."""
        return np.ascontiguousarray(np.broadcast_to(self.row, (_TILE, len(self.row))))


@dataclass(frozen=True)
class Product:
    """x W: (rows, in) → (rows, out)."""

    w: Floats  # (in, out)

    def __call__(self, x: Floats) -> Floats:
        """Map rows."""
        return np.asarray(x @ self.w)


@dataclass(frozen=True)
class Affine:
    """x W + b: (rows, in) → (rows, out)."""

    w: Floats  # (in, out)
    b: Floats  # (out,)

    def __call__(self, x: Floats, how: int = PLAIN) -> Floats:
        """Map rows; `how` is PLAIN, RELU or TANH."""
        y = self._bias.add_to(x @ self.w)
        return y if how == PLAIN else relu(y) if how == RELU else np.tanh(y, out=y)

    @cached_property
    def _bias(self) -> Bias:
        return Bias(self.b)

    def then(self, after: "Affine") -> "Affine":
        """Return the composition of this map and the next as one map."""
        return Affine(np.ascontiguousarray(self.w @ after.w), self.b @ after.w + after.b)

    def scaled(self, scale: Floats, shift: Floats | float = 0.0) -> "Affine":
        """Return the map with its output columns scaled and shifted."""
        return Affine(self.w * scale, np.asarray(self.b * scale + shift, np.float32))


def relu(x: Floats) -> Floats:
    """Return max(x, 0), computed in place."""
    return np.maximum(x, _ZEROS[: x.size].reshape(x.shape) if x.size <= len(_ZEROS) else 0, out=x)
