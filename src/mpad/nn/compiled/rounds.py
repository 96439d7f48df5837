"""Whole rounds of messages (nn/messages.py): in one call each way."""

from ctypes import Structure, c_float
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad import native
from mpad.nn.compiled import at, by_rows, call, end_to_end
from mpad.nn.compiled.memory import empty, scratch
from mpad.nn.compiled.neighbours import Graph
from mpad.nn.compiled.update import update_room

_MANY = 512  # rows; for fewer, merging W₂ into W costs more than it saves
_GRAPH = "words sentences"
_NORMS = "gamma1 beta1 before1 mean1 var1 gamma2 beta2 before2 mean2 var2"


class _Round(Structure):
    _fields_ = native.fields(f"{_GRAPH} h sent w1 b1 w2 b2 bias w u v kept out scratch", "h_row sent_row rows width")


class _RoundBack(Structure):
    _fields_ = native.fields(f"{_GRAPH} g h w1 w2 w u v kept d_h d_sent found scratch", "g_row h_row rows width")


class _Authors(Structure):
    _fields_ = [
        *native.fields(
            f"{_GRAPH} {_NORMS} h entered v1 v2 c2 w1 w2 b2 bias w u v kept out scratch", "h_row rows width merge"
        ),
        ("momentum", c_float),
        ("eps", c_float),
    ]


class _AuthorsBack(Structure):
    _fields_ = native.fields(
        f"{_GRAPH} {_NORMS} g h entered v1 v2 w1 w2 b2 w u v kept d_h found scratch", "g_row h_row rows width merge"
    )


class Round(torch.autograd.Function):
    """H [, H W₁] → H', of the paper's network: all of a round, where H W₁ is not given its first map included."""

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        sent: Tensor | None,
        graph: Graph,
        w1: Tensor | None,
        b1: Tensor,
        w2: Tensor,
        b2: Tensor,
        *gate: Tensor,
    ) -> Tensor:
        """H → H'."""
        h, sent = by_rows(h), None if sent is None else by_rows(sent)
        rows, width = h.shape
        kept, out, room = empty(5 * rows * width), empty(rows, width), scratch(7 * width * width)
        weights = end_to_end((w1, b1, w2, b2, *gate))
        arrays = h, sent, *weights, kept, out, room
        shape = h.stride(0), 0 if sent is None else sent.stride(0), rows, width
        call("round", _Round(*graph.at(), *at(arrays), *shape))
        ctx.save_for_backward(h, kept, *weights)
        ctx.graph = graph
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Of H' → of H, of H W₁, and of the weights."""
        (h, kept, w1, _, w2, _, _, *maps), g = ctx.saved_tensors, by_rows(gradients[0])
        rows, width = h.shape
        square = width * width
        d_h, d_sent = empty(rows, width), empty(rows, width) if w1 is None else None
        sizes = 3 * square, 2 * square, square, square, 3 * width, width, width, 0 if w1 is None else square
        found, room = empty(sum(sizes)), scratch(2 * rows * width + torch.get_num_threads() * update_room(width))
        arrays = g, h, w1, w2, *maps, kept, d_h, d_sent, found, room
        call("round_back", _RoundBack(*ctx.graph.at(), *at(arrays), g.stride(0), h.stride(0), rows, width))
        d_w, d_u, d_v, d_w2, d_bias, d_b2, d_b1, d_w1 = found.split(sizes)
        of_maps = [part.view(-1, width) for part in (d_w, d_u, d_v)]
        of_w1 = None if w1 is None else d_w1.view(-1, width)
        return d_h, d_sent, None, of_w1, d_b1, d_w2.view(-1, width), d_b2, d_bias, *of_maps


class AuthorsRound(torch.autograd.Function):
    """H, or H V₁ → H', of the authors' network, while training: norms are of the batch, and move their averages."""

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        graph: Graph,
        norms: tuple[tuple[Tensor, ...], tuple[Tensor, ...], float, float],
        v1: Tensor | None,
        v2: Tensor,
        c2: Tensor,
        w1: Tensor,
        w2: Tensor,
        b2: Tensor,
        *learnt: Tensor,
    ) -> Tensor:
        """H → H'. `learnt`: the gate, then γ and β of both norms.

        `norms`: the bias before each norm and its running averages; momentum and ε of both.
        """
        h = by_rows(h)
        rows, width = h.shape
        weights, scales = end_to_end((v1, v2, c2, w1, w2, b2, *learnt[:4])), end_to_end(learnt[4:])
        first, second, momentum, eps = norms
        given = (h, None) if v1 is not None else (None, h.contiguous())
        kept = empty(9 * rows * width + (3 * width + 7) * width)
        out, room = empty(rows, width), scratch(max(7 * width, 2 * torch.get_num_threads()) * width)
        arrays = *scales[:2], *first, *scales[2:], *second, *given, *weights, kept, out, room
        shape = h.stride(0), rows, width, rows >= _MANY, momentum, eps
        call("authors", _Authors(*graph.at(), *at(arrays), *shape))
        ctx.save_for_backward(*given, kept, *scales, *weights)
        ctx.graph = graph
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Of H' → of H or of H V₁, and of the weights."""
        (h, entered, kept, *rest), g = ctx.saved_tensors, by_rows(gradients[0])
        (gamma1, beta1, gamma2, beta2), (v1, v2, _, w1, w2, b2, _, *maps) = rest[:4], rest[4:]
        rows, width = g.shape
        square = width * width
        sizes = [3 * square, 2 * square, square, square, 3 * width, width, width]
        sizes += [width, width, square, width, square, width, width, width, square, width]
        d_h, found = empty(rows, width), empty(sum(sizes))
        room = scratch(3 * rows * width + torch.get_num_threads() * update_room(width))
        norms = gamma1, beta1, None, None, None, gamma2, beta2, None, None, None
        arrays = *norms, g, h, entered, v1, v2, w1, w2, b2, *maps, kept, d_h, found, room
        shape = g.stride(0), 0 if h is None else h.stride(0), rows, width, rows >= _MANY
        call("authors_back", _AuthorsBack(*ctx.graph.at(), *at(arrays), *shape))
        d_w, d_u, d_v, d_w2, d_bias, d_b2, _, *others = found.split(sizes)
        d_gamma2, d_beta2, d_w1, _, d_v2, d_c2, d_gamma1, d_beta1, d_v1, _ = others
        of_w, of_u, of_v, of_w2, of_v2, of_w1 = (part.view(-1, width) for part in (d_w, d_u, d_v, d_w2, d_v2, d_w1))
        of_maps = None if v1 is None else d_v1.view(-1, width), of_v2, d_c2, of_w1, of_w2, d_b2
        return d_h, None, None, *of_maps, d_bias, of_w, of_u, of_v, d_gamma1, d_beta1, d_gamma2, d_beta2
