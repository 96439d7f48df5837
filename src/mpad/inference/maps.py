"""Linear maps over rows, prepared for prediction."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mpad.inference.answer import Floats

Ints = NDArray[np.int64]
PLAIN, RELU, TANH = range(3)  # what follows a map

_TILE = 512  # rows
_ZEROS = np.zeros(_TILE * 256, np.float32)  # comparing with an array is three times as fast as with a number


@dataclass(frozen=True)
class Bias:
    """A row that is added to rows."""

    row: Floats  # (width,)

    def add_to(self, x: Floats) -> Floats:
        """Add it to all rows of x, in place."""
        x += self._tiled[: len(x)] if len(x) <= _TILE else self.row
        return x

    @cached_property
    def _tiled(self) -> Floats:
        """The row many times over: adding that takes half as long as adding one row to all."""
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
        """Map rows; `how` says whether ReLU or tanh follows."""
        y = self._bias.add_to(x @ self.w)
        return y if how == PLAIN else relu(y) if how == RELU else np.tanh(y, out=y)

    @cached_property
    def _bias(self) -> Bias:
        return Bias(self.b)

    def then(self, after: "Affine") -> "Affine":
        """Both maps, one behind the other, as one."""
        return Affine(np.ascontiguousarray(self.w @ after.w), self.b @ after.w + after.b)

    def scaled(self, scale: Floats, shift: Floats | float = 0.0) -> "Affine":
        """The map with its columns scaled and shifted."""
        return Affine(self.w * scale, np.asarray(self.b * scale + shift, np.float32))


def relu(x: Floats) -> Floats:
    """The larger of x and 0, in place."""
    return np.maximum(x, _ZEROS[: x.size].reshape(x.shape) if x.size <= len(_ZEROS) else 0, out=x)
