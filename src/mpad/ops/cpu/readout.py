"""All that is read out of the states of a graph's rounds (ops/readout.py) in C, in one call each way."""

from collections.abc import Sequence
from ctypes import Array, Structure
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad.kernels import native
from mpad.ops.cpu import by_rows, call, contiguous, takes, wants_gradient
from mpad.ops.cpu.workspace import allocate, scratch
from mpad.ops.graph import Segments
from mpad.ops.readout import PER_ROUND


class _Options(NamedTuple):
    size: Tensor  # (groups,) int64
    n_words: int
    rounds: int
    skip: bool
    bounded: bool
    running: tuple[Tensor, ...]
    by_batch: bool
    momentum: float
    eps: float


def readout(
    states: list[Tensor],
    segments: Segments,
    weights: list[Tensor | None],
    gamma: Tensor,
    beta: Tensor,
    dense: Tensor,
    dense_bias: Tensor,
    running: list[Tensor],
    by_batch: bool,
    momentum: float,
    eps: float,
    skip: bool,
    bounded: bool,
) -> Any:
    """Vectors and attention of each group."""
    learnt = *weights, gamma, beta, dense, dense_bias
    h, size = states[0], segments.size
    if h.ndim != 2 or size is None or segments.base is not None or not takes(*states, *learnt, *running):
        return NotImplemented
    rows = segments.owner.shape[0] + (segments.n if skip else 0)
    widths = {weight.shape for weight in weights[::PER_ROUND] if weight is not None}
    if any(x.shape != (rows, h.shape[1]) for x in states) or widths != {(h.shape[1], h.shape[1])}:
        return NotImplemented
    if not native.fits(h.shape[1], dense.shape[1]) or dense.shape[0] != h.shape[1]:
        return NotImplemented
    every, contexts = (
        len(states) * h.shape[1] * (1 + skip),
        {weight.shape for weight in weights[2::PER_ROUND] if weight is not None},
    )
    shapes = [x.shape for x in (gamma, beta, *running)]
    if dense.shape[1] != every or contexts != {(1, h.shape[1])} or any(shape != (every,) for shape in shapes):
        return NotImplemented
    if by_batch and segments.n < 2:
        return NotImplemented  # one group has no variance
    if not by_batch and wants_gradient(*states, *learnt):
        return NotImplemented  # norms by running averages have no derivative in C
    options = _Options(
        size.contiguous(), segments.owner.shape[0], len(states), skip, bounded, tuple(running), by_batch, momentum, eps
    )
    return _Readout.apply(options, *states, *learnt)  # type: ignore[no-untyped-call]


class _Readout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, of: _Options, *given: Tensor) -> tuple[Tensor, Tensor]:
        states, weights = [by_rows(h) for h in given[: of.rounds]], contiguous(*given[of.rounds :])
        groups, width = of.size.shape[0], states[0].shape[1]
        every = of.rounds * width * (1 + of.skip)
        saved = allocate(2 * every * (1 + groups) + of.rounds * (of.n_words * (width + 1) + 2 * groups * width))
        columns = max(-(-width // native.PANEL) * native.PANEL, 2 * torch.get_num_threads())
        out, alpha = allocate(groups, width), torch.empty(of.rounds, of.n_words, dtype=torch.float32)
        *_, gamma, beta, dense, dense_bias = weights
        norm = native.pack("normed", gamma=gamma, beta=beta, running_mean=of.running[0], running_var=of.running[1])
        call(
            "readouts", "readouts", **_shape(of, groups, width), rounds=_rounds(of, states, weights, alpha), norm=norm,
            dense=dense, dense_b=dense_bias, saved=saved, out=out, scratch=scratch(columns * max(every, width)),
            by_batch=of.by_batch, momentum=of.momentum, eps=of.eps,
        )  # fmt: skip
        ctx.save_for_backward(saved, out, alpha, *states, *weights)
        ctx.of = of
        ctx.mark_non_differentiable(alpha)
        return out, alpha

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        of, (saved, out, alpha, *rest), g = ctx.of, ctx.saved_tensors, by_rows(gradients[0])
        states, weights = rest[: of.rounds], rest[of.rounds :]
        groups, width = out.shape
        every = of.rounds * width * (1 + of.skip)
        need = torch.get_num_threads() * width * (max(every, width) + 2 + native.BLOCK)
        each = [
            ([width * width, width] if w[3] is not None else []) + [width * width, width, width]
            for w in _each(of, weights)
        ]
        sizes = [width * every, width, every, every, *[n for one in each for n in one]]
        grads, memory = allocate(sum(sizes)), scratch(groups * (2 * every + width) + need)
        d_states = [allocate(h.shape[0], width) for h in states]
        *_, gamma, beta, dense, _ = weights
        call(
            "readouts_back", "readouts_back", **_shape(of, groups, width),
            rounds=_rounds(of, states, weights, alpha, d_states), norm=native.pack("normed", gamma=gamma, beta=beta),
            g=g, dense=dense, out=out, saved=saved, grads=grads, scratch=memory, g_row=g.stride(0),
        )  # fmt: skip
        d_dense, d_bias, d_gamma, d_beta, *parts = grads.split(sizes)
        d_weights: list[Tensor | None] = []
        for w in _each(of, weights):
            after = (parts.pop(0).view(-1, width), parts.pop(0)) if w[3] is not None else (None, None)
            d_align, d_align_bias, d_context = parts[:3]
            del parts[:3]
            d_weights += [
                d_align.view(-1, width),
                None if w[1] is None else d_align_bias,
                d_context.view(1, -1),
                *after,
            ]
        return None, *d_states, *d_weights, d_gamma, d_beta, d_dense.view(width, every), d_bias


def _shape(of: _Options, groups: int, width: int) -> dict[str, Any]:
    numbers = {"n": of.rounds, "words": of.n_words, "behind": of.skip, "groups": groups, "width": width}
    return {"size": of.size, **numbers, "bounded": of.bounded}


def _each(of: _Options, weights: Sequence[Tensor | None]) -> list[Sequence[Tensor | None]]:
    """The weights of each round."""
    return [weights[PER_ROUND * t : PER_ROUND * (t + 1)] for t in range(of.rounds)]


def _rounds(
    of: _Options,
    states: Sequence[Tensor],
    weights: Sequence[Tensor | None],
    alpha: Tensor,
    d_states: Sequence[Tensor | None] | None = None,
) -> "Array[Structure]":
    rounds = (native.structures["reading"] * of.rounds)()
    gradients = d_states or [None] * of.rounds
    for t, (h, d_h, w) in enumerate(zip(states, gradients, _each(of, weights), strict=True)):
        maps = dict(zip(("a", "b", "v", "dense", "dense_b"), w, strict=True))
        rounds[t] = native.pack("reading", h=h, **maps, alpha=alpha[t], d_h=d_h, h_row=h.stride(0))
    return rounds
