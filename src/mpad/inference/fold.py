"""Fold a trained network's weights into the fewest products with the same predictions.

At prediction batch norm is an affine map and dropout is the identity, so adjacent linear maps become one:

    batch norm                  into the linear map before it (a mean over neighbours between them does not matter)
    two maps without a ReLU     one map (an MLP that ends without one, and the gate behind it)
    σ(x)                        (1 + tanh(x / 2)) / 2, its factors moved into the weights around it
    the first step's maps       depend only on the word: a table with a row per word, filled when a word first occurs
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.config import MPADConfig
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


Weights = Mapping[str, NDArray[Any]]
_EPSILON = 1e-5  # of torch's batch norm
_HALF = np.float32(0.5)


@dataclass(frozen=True)
class Enter:
    """The maps at the start of a round: a row's outgoing message and, with a GRU, its state and gate input.

    (rows, in) → (rows, width) [, (rows, width), (rows, 2 · width)]. In the paper's network the state is the row itself
    or, at the first step, a projection of it; or the output of an MLP, `before`.
    """

    sent: Product
    gates: Affine | None  # None without a GRU
    state: Product | None = None
    before: tuple[Affine, Affine] | None = None  # with a ReLU between them

    def __call__(self, h: Floats) -> tuple[Floats, ...]:
        """Map rows."""
        if self.before is not None:
            h = self.before[1](self.before[0](h, RELU))
        if self.gates is None:
            return (self.sent(h),)
        return self.sent(h), h if self.state is None else self.state(h), self.gates(h)


@dataclass(frozen=True)
class Step:
    """One folded round of message passing.

    `mlp2` (the second layer) is None if it was merged into `gates`; `gates` is None without a GRU.
    """

    enter: "Enter"
    bias: Bias  # (width,), added to the mean of incoming messages, before a ReLU
    mlp2: Affine | None
    mlp_relu: bool
    gates: Product | None  # → (rows, 2 · width): reset and update, both halved; the bias is in the output of `enter`
    candidate: Affine | None  # → (rows, width)
    reset: Floats | None  # (width, width), halved

    def message(self, x: Floats) -> tuple[Floats, ...]:
        """Compute a row's message from the ReLU of its incoming mean (AGGREGATE, equation 4).

        With a GRU, return the message's part in the gates and in the candidate instead.
        """
        if self.mlp2 is not None:
            x = self.mlp2(x, RELU if self.mlp_relu else PLAIN)
        return (x,) if self.gates is None or self.candidate is None else (self.gates(x), self.candidate(x))


@dataclass(frozen=True)
class Read:
    """One folded readout: attention, and the dense layer after it if there is one."""

    align: Affine
    context: Floats  # (width,)
    dense: Affine | None
    skip: bool
    bounded: bool  # a tanh around the scores
    small: bool  # no score can exceed ±60, so exp is safe


@dataclass(frozen=True)
class FoldedLevel:
    """Folded message passing and readout of one level: words or sentences."""

    steps: list[Step]
    reads: list[Read]
    dense: Affine  # batch norm included


def fold_level(weights: Weights, name: str, config: MPADConfig, n_steps: int, master: bool) -> FoldedLevel:
    """Fold the level of that name."""
    steps = [_step(weights, f"{name}.rounds.{t}", config) for t in range(n_steps)]
    skip = master and config.master_skip
    reads = [_read(weights, f"{name}.readout.attention.{t}", skip, config) for t in range(max(n_steps, 1))]
    scale, shift = _norm(weights, f"{name}.readout.norm")
    dense = linear(weights, f"{name}.readout.dense")
    return FoldedLevel(steps, reads, Affine(scale[:, None] * dense.w, shift @ dense.w + dense.b))


def linear(weights: Weights, name: str) -> Affine:
    """Return the linear layer of that name; a missing bias is zeros."""
    w = np.ascontiguousarray(weights[f"{name}.weight"].T, np.float32)
    return Affine(w, np.asarray(weights.get(f"{name}.bias", np.zeros(w.shape[1], np.float32)), np.float32))


def _norm(weights: Weights, name: str) -> tuple[Floats, Floats]:
    """Return batch norm at prediction as (scale, shift)."""
    scale = weights[f"{name}.weight"] / np.sqrt(weights[f"{name}.running_var"] + _EPSILON)
    shift = weights[f"{name}.bias"] - weights[f"{name}.running_mean"] * scale
    return scale.astype(np.float32), shift.astype(np.float32)


def _read(weights: Weights, name: str, skip: bool, config: MPADConfig) -> Read:
    dense = linear(weights, f"{name}.dense") if config.attention_dense else None
    context = np.ascontiguousarray(weights[f"{name}.context.weight"][0], np.float32)
    small = config.score_tanh or float(np.abs(context).sum()) < 60
    return Read(linear(weights, f"{name}.align"), context, dense, skip, config.score_tanh, small)


def _step(weights: Weights, name: str, config: MPADConfig) -> Step:
    width, gated = config.hidden, config.combine == "gru"
    mlp1, mlp2 = linear(weights, f"{name}.mlp1"), linear(weights, f"{name}.mlp2")
    if config.mlp_norm:
        mlp1 = mlp1.scaled(*_norm(weights, f"{name}.mlp_norm"))
    gates = candidate = reset = u = None
    merged = gated and not config.mlp_relu
    if gated:
        both = linear(weights, f"{name}.gate.from_message")
        both = mlp2.then(both) if merged else both
        gates = Product(both.w[:, : 2 * width] * _HALF)
        candidate = Affine(np.ascontiguousarray(both.w[:, 2 * width :]), both.b[2 * width :])
        u = Affine(linear(weights, f"{name}.gate.from_state").w * _HALF, both.b[: 2 * width] * _HALF)
        reset = linear(weights, f"{name}.gate.from_reset").w * _HALF
    bias = Bias(np.asarray(mlp1.b, np.float32))
    enter = _enter(weights, name, config, Product(mlp1.w), u)
    return Step(enter, bias, None if merged else mlp2, config.mlp_relu, gates, candidate, reset)


def _enter(weights: Weights, name: str, config: MPADConfig, sent: Product, u: Affine | None) -> Enter:
    if config.mlp_before:
        first = linear(weights, f"{name}.before1")
        first = first.scaled(*_norm(weights, f"{name}.before_norm")) if config.mlp_norm else first
        return Enter(sent, u, before=(first, linear(weights, f"{name}.before2")))
    if u is None or f"{name}.project.weight" not in weights:
        return Enter(sent, u)
    state = Product(linear(weights, f"{name}.project").w)  # the first step: word vectors → states
    return Enter(sent, Affine(state.w, np.zeros(len(u.w), np.float32)).then(u), state)
