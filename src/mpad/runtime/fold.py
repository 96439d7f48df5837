"""A trained network's weights → the fewest products that give the same answers.

At prediction batch norm is an affine map and dropout is nothing, so neighbouring linear maps become one:

    batch norm                  into the linear map before it (a mean over neighbours between them does not matter)
    two maps without a ReLU     one map (the authors' MLP ends so, before the gate)
    σ(x)                        (1 + tanh(x / 2)) / 2, its factors moved into the weights around it
    the first step's maps       depend on the word alone: a table with a row a word, filled when a word first occurs
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad.models.config import MPADConfig
from mpad.runtime.answer import Floats

Weights = Mapping[str, NDArray[Any]]
_EPSILON = 1e-5  # of torch's batch norm
_HALF = np.float32(0.5)
TILE = 512  # rows
_ZEROS = np.zeros(TILE * 256, np.float32)  # comparing with an array is three times as fast as with a number


@dataclass(frozen=True)
class Affine:
    """x W + b: (rows, in) → (rows, out)."""

    w: Floats  # (in, out)
    b: Floats  # (out,)

    def __call__(self, x: Floats) -> Floats:
        """Map rows."""
        y: Floats = x @ self.w
        return add_row(y, self._tiled)

    @cached_property
    def _tiled(self) -> Floats:
        return tiled(self.b)

    def then(self, after: "Affine") -> "Affine":
        """Both maps, one behind the other, as one."""
        return Affine(np.ascontiguousarray(self.w @ after.w), self.b @ after.w + after.b)

    def scaled(self, scale: Floats | np.float32, shift: Floats | float = 0.0) -> "Affine":
        """The map with its columns scaled and shifted."""
        return Affine(self.w * scale, np.asarray(self.b * scale + shift, np.float32))


@dataclass(frozen=True)
class Step:
    """One round of messages, prepared.

    `enter` gives of each row its message to others and, with a GRU, its state and the state's part in the gates.
    `hear` (the paper's second layer) is None where it was merged into `gates`; `gates` is None without a GRU.
    """

    enter: Callable[[Floats], tuple[Floats, ...]]  # (rows, in) → (rows, width) [, (rows, width), (rows, 2 · width)]
    bias: Floats  # (TILE, width), tiled; added to the mean of what was heard, before a ReLU
    hear: Affine | None
    hear_relu: bool
    gates: Affine | None  # → (rows, 2 · width): reset and update, both halved; its bias is in what `enter` gives
    candidate: Affine | None  # → (rows, width)
    reset: Floats | None  # (width, width), halved

    def tell(self, heard: Floats) -> tuple[Floats, ...]:
        """AGGREGATE, equation 4: the mean of what a row heard → its message.

        With a GRU, the message's part in the gates and in the candidate instead. The argument is overwritten.
        """
        x = relu(add_row(heard, self.bias))
        if self.hear is not None:
            x = relu(self.hear(x)) if self.hear_relu else self.hear(x)
        return (x,) if self.gates is None or self.candidate is None else (x @ self.gates.w, self.candidate(x))


@dataclass(frozen=True)
class Read:
    """One readout, prepared: attention, and the dense layer after it in the authors' network."""

    align: Affine
    context: Floats  # (width,)
    dense: Affine | None
    skip: bool
    small: bool  # whether no score can be beyond ±60, where exp is safe


@dataclass(frozen=True)
class FoldedLevel:
    """Message passing and readout over one kind of graph, prepared."""

    steps: list[Step]
    reads: list[Read]
    dense: Affine  # batch norm included


def tiled(row: Floats) -> Floats:
    """A row many times over: adding it to a matrix of its size takes half as long as adding one row to all."""
    return np.ascontiguousarray(np.broadcast_to(row, (TILE, len(row))))


def add_row(x: Floats, tile: Floats) -> Floats:
    """Add the tile's row to all rows of x, in place."""
    x += tile[: len(x)] if len(x) <= len(tile) else tile[0]
    return x


def relu(x: Floats) -> Floats:
    """The larger of x and 0, in place."""
    return np.maximum(x, _ZEROS[: x.size].reshape(x.shape) if x.size <= len(_ZEROS) else 0, out=x)


def fold_level(weights: Weights, name: str, config: MPADConfig, n_steps: int, master: bool) -> FoldedLevel:
    """Prepare the level of that name."""
    steps = [_step(weights, f"{name}.steps.{t}", config) for t in range(n_steps)]
    skip = master and config.master_skip
    reads = [_read(weights, f"{name}.readouts.{t}.attention", skip, config.authors) for t in range(max(n_steps, 1))]
    scale, shift = _norm(weights, f"{name}.norm")
    dense = linear(weights, f"{name}.dense")
    return FoldedLevel(steps, reads, Affine(scale[:, None] * dense.w, shift @ dense.w + dense.b))


def linear(weights: Weights, name: str) -> Affine:
    """The linear layer of that name; without a bias, a bias of zeros."""
    w = np.ascontiguousarray(weights[f"{name}.weight"].T, np.float32)
    return Affine(w, np.asarray(weights.get(f"{name}.bias", np.zeros(w.shape[1], np.float32)), np.float32))


def _norm(weights: Weights, name: str) -> tuple[Floats, Floats]:
    """Batch norm at prediction as (scale, shift)."""
    scale = weights[f"{name}.weight"] / np.sqrt(weights[f"{name}.running_var"] + _EPSILON)
    shift = weights[f"{name}.bias"] - weights[f"{name}.running_mean"] * scale
    return scale.astype(np.float32), shift.astype(np.float32)


def _read(weights: Weights, name: str, skip: bool, authors: bool) -> Read:
    dense = linear(weights, f"{name}.dense") if authors else None
    context = np.ascontiguousarray(weights[f"{name}.context.weight"][0], np.float32)
    return Read(linear(weights, f"{name}.align"), context, dense, skip, authors or float(np.abs(context).sum()) < 60)


def _step(weights: Weights, name: str, config: MPADConfig) -> Step:
    width, gated = config.hidden, config.combine == "gru"
    sent, hear = linear(weights, f"{name}.sent"), linear(weights, f"{name}.heard")
    bias = sent.b
    if config.authors:
        scale, shift = _norm(weights, f"{name}.sent_norm")
        sent, bias = sent.scaled(scale), sent.b * scale + shift
    gates = candidate = reset = u = None
    if gated:
        both = linear(weights, f"{name}.combine.from_message")
        both = hear.then(both) if config.authors else both
        gates = Affine(np.ascontiguousarray(both.w[:, : 2 * width]), both.b[: 2 * width]).scaled(_HALF)
        candidate = Affine(np.ascontiguousarray(both.w[:, 2 * width :]), both.b[2 * width :])
        u = Affine(linear(weights, f"{name}.combine.from_state").w * _HALF, gates.b)
        reset = linear(weights, f"{name}.combine.from_reset").w * _HALF
    enter = (_authors_enter if config.authors else _paper_enter)(weights, name, sent.w, u)
    merged = config.authors and gated
    return Step(
        enter,
        tiled(np.asarray(bias, np.float32)),
        None if merged else hear,
        not config.authors,
        gates,
        candidate,
        reset,
    )


def _paper_enter(weights: Weights, name: str, sent: Floats, u: Affine | None) -> Callable[[Floats], tuple[Floats, ...]]:
    if u is None:
        return lambda h: (h @ sent,)
    if f"{name}.state.weight" not in weights:
        return lambda h: (h @ sent, h, u(h))
    state = linear(weights, f"{name}.state").w  # the first step: word vectors → states
    gates = Affine(state, np.zeros(len(u.w), np.float32)).then(u)
    return lambda h: (h @ sent, h @ state, gates(h))


def _authors_enter(
    weights: Weights, name: str, sent: Floats, u: Affine | None
) -> Callable[[Floats], tuple[Floats, ...]]:
    first = linear(weights, f"{name}.enter").scaled(*_norm(weights, f"{name}.enter_norm"))
    second = linear(weights, f"{name}.state")

    def enter(h: Floats) -> tuple[Floats, ...]:
        x = second(relu(first(h)))
        return (x @ sent,) if u is None else (x @ sent, x, u(x))

    return enter
