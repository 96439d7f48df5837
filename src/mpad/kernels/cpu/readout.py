"""The readout in C, one call each way."""

from collections.abc import Sequence
from ctypes import Array, Structure
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad import native
from mpad.kernels.cpu import by_rows, call, contiguous, takes, wants_gradient
from mpad.kernels.cpu.workspace import allocate, scratch
from mpad.kernels.weights import attention_weights, attentions, running_averages
from mpad.model import Graph, Readout, SentenceGraph

PER_ROUND = 5  # weights of each round's attention


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


def readout(module: Readout, states: list[Tensor], graph: Graph) -> Any:
    """Read vectors and attention out of states; NotImplemented for what C does not support."""
    norm, dense, skip = module.norm, module.dense, module.skip
    size = graph.count if isinstance(graph, SentenceGraph) else graph.batch.size
    learned = *(x for one in attention_weights(module) for x in one), norm.weight, norm.bias, dense.weight, dense.bias
    rows, width = len(graph.owner) + (graph.n if skip else 0), dense.out_features
    if any(x.shape != (rows, width) for x in states) or not takes(*states, *learned):
        return NotImplemented
    if not native.fits(width, dense.in_features):
        return NotImplemented
    # One group has no variance, and norms by running averages have no gradient in C.
    if graph.n < 2 if module.training else wants_gradient(*states, *learned):
        return NotImplemented
    running, bounded = running_averages(norm), attentions(module)[0].bounded
    shape = size.contiguous(), len(graph.owner), len(states), skip, bounded
    options = _Options(*shape, running, module.training, norm.momentum or 0.0, norm.eps)
    return _Readout.apply(options, *states, *learned)  # type: ignore[no-untyped-call]


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
        norm = native.pack("batch_norm", gamma=gamma, beta=beta, running_mean=of.running[0], running_var=of.running[1])
        call(
            "readout", "readout", **_shape(of, groups, width), rounds=_rounds(of, states, weights, alpha), norm=norm,
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
            "readout_back", "readout_back", **_shape(of, groups, width),
            rounds=_rounds(of, states, weights, alpha, d_states),
            norm=native.pack("batch_norm", gamma=gamma, beta=beta), g=g, dense=dense, out=out, saved=saved, grads=grads,
            scratch=memory, g_row=g.stride(0),
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
    numbers = {"n": of.rounds, "words": of.n_words, "master": of.skip, "groups": groups, "width": width}
    return {"size": of.size, **numbers, "bounded": of.bounded}


def _each(of: _Options, weights: Sequence[Tensor | None]) -> list[Sequence[Tensor | None]]:
    """Return the weights of each round."""
    return [weights[PER_ROUND * t : PER_ROUND * (t + 1)] for t in range(of.rounds)]


def _rounds(
    of: _Options,
    states: Sequence[Tensor],
    weights: Sequence[Tensor | None],
    alpha: Tensor,
    d_states: Sequence[Tensor | None] | None = None,
) -> "Array[Structure]":
    rounds = (native.structures["readout_round"] * of.rounds)()
    gradients = d_states or [None] * of.rounds
    for t, (h, d_h, w) in enumerate(zip(states, gradients, _each(of, weights), strict=True)):
        maps = dict(zip(("a", "b", "v", "dense", "dense_b"), w, strict=True))
        rounds[t] = native.pack("readout_round", h=h, **maps, alpha=alpha[t], d_h=d_h, h_row=h.stride(0))
    return rounds
