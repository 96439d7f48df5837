"""Rounds of messages (ops/message_passing.py) in C, in one call each way."""

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad.kernels import native
from mpad.ops.cpu import by_rows, call, contiguous, library, takes, wants_gradient
from mpad.ops.cpu.workspace import allocate, scratch
from mpad.ops.graph import Graph, SentenceGraph, WordGraph
from mpad.ops.message_passing import RoundWeights

_MANY = 512  # rows; for fewer, merging W₂ into W costs more than it saves
_CLIQUE, _PATH = range(2)


def mean_weights(weight: Tensor, target: Tensor, size: Tensor, n_words: int, master: bool) -> Any:
    """D⁻¹ of the graph of words."""
    if not takes(weight) or wants_gradient(weight):
        return NotImplemented
    divided, share, part = (torch.empty(n, dtype=weight.dtype) for n in (len(weight), n_words, len(size)))
    arrays = {"target": target.contiguous(), "size": size.contiguous(), "weight": weight.contiguous()}
    counts = {"edges": len(weight), "words": n_words, "graphs": len(size), "master": master}
    of = native.pack("shares", **arrays, divided=divided, share=share, part=part, **counts)
    library().mpad_shares(ctypes.byref(of))
    return [divided, share, part]


def message_round(
    h: Tensor | None,
    x: Tensor | None,
    graph: Graph,
    weights: RoundWeights,
    running: list[Tensor],
    by_batch: bool,
    momentum: float,
    eps: float,
    relu: bool,
) -> Any:
    """A round as the paper has it, or as the authors' code does: MLPs with norms, one before the mean too."""
    given = h if h is not None else x
    if given is None or given.ndim != 2 or not takes(h, x, *weights, *running) or not _takes_graph(graph):
        return NotImplemented
    if not _shapes_fit(h, x, weights):
        return NotImplemented
    for rows in (h, x):
        if rows is not None:
            _check_rows(graph, rows)
    parts = weights.before1, weights.before_gamma, weights.gamma
    if h is not None and parts == (None, None, None) and relu:
        return _Round.apply(h, x, graph, None, *weights)  # type: ignore[no-untyped-call]
    if any(part is None for part in parts) or relu or (h is not None and x is not None):
        return NotImplemented
    # One row has no variance, and norms by running averages have no derivative in C.
    if (by_batch and given.shape[0] < 2) or (not by_batch and wants_gradient(given, *weights)):
        return NotImplemented
    options = tuple(running), by_batch, momentum, eps
    return _NormedRound.apply(h, x, graph, options, *weights)  # type: ignore[no-untyped-call]


def _shapes_fit(h: Tensor | None, x: Tensor | None, weights: RoundWeights) -> bool:
    """Whether rows and weights are of shapes that C reads, with a gate."""
    width = weights.w1.shape[0]
    if weights.bias is None or not native.fits(width):
        return False
    if any(rows.shape[1] != width for rows in (h, x) if rows is not None):
        return False
    first = "w1" if weights.before1 is None else "before1"
    maps = {"before2": 1, "w2": 1, "v": 1, "u": 2, "w": 3, **({first: 1} if x is None else {})}
    rows_of = {"before1_bias": 1, "before_gamma": 1, "before_beta": 1, "before2_bias": 1, "b1": 1, "gamma": 1}
    rows_of |= {"beta": 1, "b2": 1, "bias": 3}
    named = weights._asdict()
    square = all(named[name] is None or named[name].shape == (n * width, width) for name, n in maps.items())
    return square and all(named[name] is None or named[name].shape == (n * width,) for name, n in rows_of.items())


def _takes_graph(graph: Graph) -> bool:
    if isinstance(graph, SentenceGraph):
        return graph.models == 1
    return (
        isinstance(graph, WordGraph) and graph.models == 1 and takes(graph.weight) and not wants_gradient(graph.weight)
    )


def _check_rows(graph: Graph, x: Tensor) -> None:
    """C would read and write beyond other rows."""
    if isinstance(graph, SentenceGraph):
        rows = graph.owner.shape[0]
    else:
        assert isinstance(graph, WordGraph)
        rows = graph.owner.shape[0] + (graph.size.shape[0] if graph.master else 0)
    if x.shape[0] != rows:
        raise ValueError(f"these graphs have {rows} rows (words, then master nodes; or sentences), but x has {len(x)}")


class _Edges:
    """A graph as C takes it, and the arrays that it points to."""

    def __init__(self, graph: Graph, width: int) -> None:
        self.words = self.sentences = None
        if isinstance(graph, SentenceGraph):
            self._arrays = (graph.sizes.contiguous(),)
            kind = _PATH if graph.path else _CLIQUE
            shape = {"x_row": width, "documents": len(graph.sizes), "width": width, "kind": kind}
            self.sentences = native.pack("among", size=self._arrays[0], **shape, mean=graph.renormalise)
            return
        assert isinstance(graph, WordGraph)
        names = "size", "source", "target", "weight", "share", "part"
        arrays = {name: getattr(graph, name).contiguous() for name in names}
        self._arrays = tuple(arrays.values())
        counts = {"words": len(graph.owner), "edges": len(graph.source), "graphs": len(graph.size)}
        self.words = native.pack("mean", **arrays, **counts, x_row=width, width=width, master=graph.master)

    def in_c(self) -> Any:
        """The structure, to be copied into others."""
        return native.pack("graph", words=self.words, sentences=self.sentences)


class _Round(torch.autograd.Function):
    """H [, H W₁] → H': a mean, a ReLU, a linear map with ReLU, the gate."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, x: Tensor | None, graph: Graph, _: None, *given: Tensor) -> Tensor:
        h, x = by_rows(h), None if x is None else by_rows(x)
        rows, width = h.shape
        m = RoundWeights(*contiguous(*given))  # type: ignore[arg-type]
        edges, saved, out = _Edges(graph, width), allocate(5 * rows * width), allocate(rows, width)
        maps = {"w1": m.w1 if x is None else None, "b1": m.b1, "w2": m.w2, "b2": m.b2}
        gate = {"bias": m.bias, "w": m.w, "u": m.u, "v": m.v}
        shape = {"h_row": h.stride(0), "sent_row": 0 if x is None else x.stride(0), "rows": rows, "width": width}
        memory = {"saved": saved, "out": out, "scratch": scratch(7 * width * width)}
        call("round", "round", graph=edges.in_c(), h=h, sent=x, **maps, **gate, **memory, **shape)
        ctx.save_for_backward(h, saved, *m)
        ctx.edges, ctx.mapped = edges, x is not None
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (h, saved, *given), g = ctx.saved_tensors, by_rows(gradients[0])
        m, mapped = RoundWeights(*given), ctx.mapped
        rows, width = h.shape
        d_h, d_x = allocate(rows, width), allocate(rows, width) if mapped else None
        sizes = _GateGradients.sizes(width) + [0 if mapped else width * width]
        grads = allocate(sum(sizes))
        memory = scratch(2 * rows * width + torch.get_num_threads() * _update_workspace(width))
        maps = {"w1": None if mapped else m.w1, "w2": m.w2, "w": m.w, "u": m.u, "v": m.v}
        call(
            "round_back", "round_back", graph=ctx.edges.in_c(), g=g, h=h, **maps, saved=saved, d_h=d_h, d_sent=d_x,
            grads=grads, scratch=memory, g_row=g.stride(0), h_row=h.stride(0), rows=rows, width=width,
        )  # fmt: skip
        *of_gate, d_w1 = grads.split(sizes)
        gate = _GateGradients(of_gate, width)
        d = dict.fromkeys(RoundWeights._fields) | gate.named | {"b1": gate.before}
        if not mapped:
            d["w1"] = d_w1.view(width, width)
        return d_h, d_x, None, None, *d.values()


class _NormedRound(torch.autograd.Function):
    """H, or H V₁ → H': an MLP with batch norm inside, the mean, another such MLP, the gate."""

    @staticmethod
    def forward(ctx: Any, h: Tensor | None, x: Tensor | None, graph: Graph, options: Any, *given: Tensor) -> Tensor:
        running, by_batch, momentum, eps = options
        h, x = None if h is None else by_rows(h), None if x is None else x.contiguous()
        rows, width = (h if h is not None else x).shape  # type: ignore[union-attr]
        m = RoundWeights(*contiguous(*given))  # type: ignore[arg-type]
        edges, out = _Edges(graph, width), allocate(rows, width)
        saved = allocate(9 * rows * width + (3 * width + 7) * width)
        memory = scratch(max(7 * width, 2 * torch.get_num_threads()) * width)
        means = {"running_mean": running[0], "running_var": running[1]}
        enter = native.pack("normed", gamma=m.before_gamma, beta=m.before_beta, before=m.before1_bias, **means)
        means = {"running_mean": running[2], "running_var": running[3]}
        send = native.pack("normed", gamma=m.gamma, beta=m.beta, before=m.b1, **means)
        merge = rows >= _MANY
        call(
            "normed_round", "normed_round", graph=edges.in_c(), enter=enter, send=send, h=h, entered=x,
            v1=m.before1 if x is None else None, v2=m.before2, c2=m.before2_bias, w1=m.w1, w2=m.w2, b2=m.b2,
            bias=m.bias, w=m.w, u=m.u, v=m.v, saved=saved, out=out, scratch=memory,
            h_row=0 if h is None else h.stride(0), rows=rows, width=width, merge=merge, by_batch=by_batch,
            momentum=momentum, eps=eps,
        )  # fmt: skip
        ctx.save_for_backward(h, x, saved, *m)
        ctx.edges, ctx.merge = edges, merge
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (h, x, saved, *given), g = ctx.saved_tensors, by_rows(gradients[0])
        m = RoundWeights(*given)
        rows, width = g.shape
        square = width * width
        sizes = _GateGradients.sizes(width)
        sizes += [width, width, square, width, square, width, width, width, square, width]
        d_h, grads = allocate(rows, width), allocate(sum(sizes))
        memory = scratch(3 * rows * width + torch.get_num_threads() * _update_workspace(width))
        enter = native.pack("normed", gamma=m.before_gamma, beta=m.before_beta)
        send = native.pack("normed", gamma=m.gamma, beta=m.beta)
        call(
            "normed_round_back", "normed_round_back", graph=ctx.edges.in_c(), enter=enter, send=send, g=g, h=h,
            entered=x, v1=m.before1 if x is None else None, v2=m.before2, w1=m.w1, w2=m.w2, b2=m.b2, w=m.w, u=m.u,
            v=m.v, saved=saved, d_h=d_h, grads=grads, scratch=memory, g_row=g.stride(0),
            h_row=0 if h is None else h.stride(0), rows=rows, width=width, merge=ctx.merge,
        )  # fmt: skip
        *of_gate, d_gamma, d_beta, d_w1, _, d_v2, d_c2, d_before_gamma, d_before_beta, d_v1, _ = grads.split(sizes)
        d = dict.fromkeys(RoundWeights._fields) | _GateGradients(of_gate, width).named
        d |= {"gamma": d_gamma, "beta": d_beta, "w1": d_w1.view(width, -1), "before2": d_v2.view(width, -1)}
        d |= {"before2_bias": d_c2, "before_gamma": d_before_gamma, "before_beta": d_before_beta}
        if x is None:
            d["before1"] = d_v1.view(width, -1)
        return None if h is None else d_h, None if x is None else d_h, None, None, *d.values()


class _GateGradients:
    """Gradients of an update's weights, as C lays them out."""

    def __init__(self, parts: list[Tensor], width: int) -> None:
        d_w, d_u, d_v, d_w2, d_bias, d_b2, self.before = parts  # the last: of a bias before the message's ReLU
        maps = {"w": d_w, "u": d_u, "v": d_v, "w2": d_w2}
        self.named = {name: part.view(-1, width) for name, part in maps.items()} | {"bias": d_bias, "b2": d_b2}

    @staticmethod
    def sizes(width: int) -> list[int]:
        """Numbers of each."""
        square = width * width
        return [3 * square, 2 * square, square, square, 3 * width, width, width]


def _update_workspace(width: int) -> int:
    """Numbers that a thread needs for the derivative of an update: gradients, and what it works with."""
    return 7 * width * width + 5 * width + (5 * native.BLOCK + native.STRIP) * width
