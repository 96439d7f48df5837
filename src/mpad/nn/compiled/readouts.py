"""All that a level reads out of its rounds (nn/readout.py): in one call each way."""

from collections.abc import Sequence
from ctypes import Array, Structure, addressof, c_float
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad import native
from mpad.nn.compiled import at, by_rows, call, end_to_end
from mpad.nn.compiled.memory import empty, scratch

_NORM = "gamma beta before running_mean running_var"


class _Reading(Structure):
    _fields_ = native.fields("h a b v dense dense_b alpha d_h", "h_row")


class _Readouts(Structure):
    _fields_ = [
        *native.fields(f"size rounds {_NORM} dense dense_b kept out scratch", "n words behind groups width bounded"),
        ("momentum", c_float),
        ("eps", c_float),
    ]


class _ReadoutsBack(Structure):
    _fields_ = native.fields(
        f"size rounds {_NORM} g dense out kept found scratch", "g_row n words behind groups width bounded"
    )


@dataclass(frozen=True)
class Reading:
    """What is read, beside what is learnt: groups are runs of words of these sizes."""

    sizes: Tensor
    words: int
    rounds: int
    behind: bool  # whether each group has a row behind all words
    authors: bool  # scores are bounded, and a dense layer follows each attention
    running: tuple[Tensor, Tensor]
    momentum: float
    eps: float


class Readouts(torch.autograd.Function):
    """H of each round → a vector for each group, and the attention of each round.

    Weights of each round: W_A, its bias, v [W and b of the dense layer]; then γ, β, W and b of what follows all.
    """

    @staticmethod
    def forward(ctx: Any, of: Reading, *given: Tensor) -> tuple[Tensor, Tensor]:
        """Hs and weights → (groups, width), (rounds, words)."""
        states, weights = [by_rows(h) for h in given[: of.rounds]], end_to_end(given[of.rounds :])
        groups, width = of.sizes.shape[0], states[0].shape[1]
        every = of.rounds * width * (1 + of.behind)
        kept = empty(2 * every * (1 + groups) + of.rounds * (of.words * (width + 1) + 2 * groups * width))
        columns = max(-(-width // native.PANEL) * native.PANEL, 2 * torch.get_num_threads())
        out, room = empty(groups, width), scratch(columns * max(every, width))
        alpha = torch.empty(of.rounds, of.words, dtype=torch.float32, device="cpu")
        rounds = _rounds(of, states, weights, alpha, [None] * of.rounds)
        gamma, beta, *dense = weights[-4:]
        arrays = gamma, beta, None, *of.running, *dense, kept, out, room
        shape = of.rounds, of.words, of.behind, groups, width, of.authors, of.momentum, of.eps
        call("readouts", _Readouts(of.sizes.data_ptr(), addressof(rounds), *at(arrays), *shape))
        ctx.save_for_backward(kept, out, alpha, *states, *weights)
        ctx.of = of
        ctx.mark_non_differentiable(alpha)
        return out, alpha

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Of the vectors → of the Hs, and of the weights."""
        of, (kept, out, alpha, *rest), g = ctx.of, ctx.saved_tensors, by_rows(gradients[0])
        states, weights = rest[: of.rounds], rest[of.rounds :]
        groups, width = out.shape
        every = of.rounds * width * (1 + of.behind)
        threads = torch.get_num_threads()
        need = threads * width * (max(every, width) + 2 + native.BLOCK)
        sizes = [width * every, width, every, every]
        sizes += of.rounds * [*([width * width, width] if of.authors else []), width * width, width, width]
        found, room = empty(sum(sizes)), scratch(groups * (2 * every + width) + need)
        d_states = [empty(h.shape[0], width) for h in states]
        rounds = _rounds(of, states, weights, alpha, d_states)
        gamma, beta, dense, _ = weights[-4:]
        arrays = gamma, beta, None, None, None, g, dense, out, kept, found, room
        shape = g.stride(0), of.rounds, of.words, of.behind, groups, width, of.authors
        call("readouts_back", _ReadoutsBack(of.sizes.data_ptr(), addressof(rounds), *at(arrays), *shape))
        d_dense, d_bias, d_gamma, d_beta, *parts = found.split(sizes)
        each = len(parts) // of.rounds
        d_weights: list[Tensor | None] = []
        for number in range(of.rounds):
            *mapped, d_a, d_b, d_v = parts[number * each : (number + 1) * each]
            has_bias = weights[number * _each(of) + 1] is not None
            d_weights += [d_a.view(width, width), d_b if has_bias else None, d_v.view(1, width)]
            d_weights += [part.view(-1, width) if k == 0 else part for k, part in enumerate(mapped)]
        return None, *d_states, *d_weights, d_gamma, d_beta, d_dense.view(width, every), d_bias


def _each(of: Reading) -> int:
    """Weights of a round."""
    return 5 if of.authors else 3


def _rounds(
    of: Reading,
    states: Sequence[Tensor],
    weights: Sequence[Tensor | None],
    alpha: Tensor,
    d_states: Sequence[Tensor | None],
) -> "Array[_Reading]":
    rounds = (_Reading * of.rounds)()
    for t, (h, d_h) in enumerate(zip(states, d_states, strict=True)):
        own = list(weights[t * _each(of) : (t + 1) * _each(of)]) + ([] if of.authors else [None, None])
        rounds[t] = _Reading(*at((h, *own, alpha[t], d_h)), h.stride(0))
    return rounds
