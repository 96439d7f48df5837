"""Rounds of message passing in C, one call each way."""

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mpad import native
from mpad.kernels.cpu import by_rows, call, contiguous, library, takes, wants_gradient
from mpad.kernels.cpu.embedding import WordRows
from mpad.kernels.cpu.workspace import allocate, scratch
from mpad.kernels.weights import RoundWeights, round_weights, running_averages
from mpad.model import BatchNorm, Graph, MessagePassing, SentenceGraph, WordGraph

_MANY = 512  # rows; for fewer, merging W₂ into W costs more than it saves
_CLIQUE, _PATH = range(2)
_WEIGHTS = "weight", "master_weight", "word_weight"


def message_round(module: MessagePassing, h: Tensor | WordRows, graph: Graph) -> Any:
    """Run a round of the paper's or of the authors' kind; NotImplemented for anything else."""
    width, given = module.mlp1.out_features, h.table if isinstance(h, WordRows) else h
    norms = isinstance(module.before_norm, BatchNorm), isinstance(module.mlp_norm, BatchNorm)
    authors = module.before1 is not None and norms == (True, True) and not module.relu
    paper = module.before1 is None and norms == (False, False) and module.relu
    if not (authors or paper) or module.gate is None or not native.fits(width) or not _takes_graph(graph):
        return NotImplemented
    weights = round_weights(module)
    if not takes(given, *weights) or (not isinstance(h, WordRows) and (h.ndim != 2 or h.shape[1] != width)):
        return NotImplemented
    _check_rows(graph, h)
    # One row has no variance, and norms by running averages have no gradient in C.
    if authors and (len(h) < 2 if module.training else wants_gradient(given, *weights)):
        return NotImplemented
    first = module.mlp1 if module.before1 is None else module.before1
    state: Tensor | None = None
    x: Tensor | None = None
    if isinstance(h, Tensor):
        state = h
    else:
        maps = [first.weight] if module.project is None else [first.weight, module.project.weight]
        x, *states = h.linear(*maps)
        state = states[0] if states else None
    if paper:
        return _Round.apply(state, x, graph, None, *weights)  # type: ignore[no-untyped-call]
    norm = module.mlp_norm
    running = *running_averages(module.before_norm), *running_averages(norm)
    options = running, module.training, norm.momentum or 0.0, norm.eps
    return _NormedRound.apply(state, x, graph, options, *weights)  # type: ignore[no-untyped-call]


def _takes_graph(graph: Graph) -> bool:
    return isinstance(graph, SentenceGraph) or (
        isinstance(graph, WordGraph) and graph.edge_scale is None and takes(graph.batch.weight)
    )


def _check_rows(graph: Graph, h: Tensor | WordRows) -> None:
    """Check the number of rows: C would read and write outside of them."""
    rows = len(graph.owner) + (graph.n if isinstance(graph, WordGraph) and graph.master else 0)
    if len(h) != rows:
        raise ValueError(f"these graphs have {rows} rows (words, then master nodes; or sentences), not {len(h)}")


def mean_weights(graph: WordGraph) -> tuple[Tensor, Tensor, Tensor]:
    """Return D⁻¹ A as edge weights, the master's weight in each word's mean, and each word's in its master's.

    They are kept with the graph: every round uses them.
    """
    known: tuple[Tensor, Tensor, Tensor] | None = graph.__dict__.get("mean_weights")
    if known is not None:
        return known
    batch, n = graph.batch, len(graph.owner)
    weight = batch.weight.contiguous()
    weights = weight, weight.new_ones(n), weight.new_ones(graph.n)
    if graph.mean:
        weights = torch.empty_like(weight), *weights[1:]
        arrays = {"target": batch.target.contiguous(), "size": batch.size.contiguous(), "raw": weight}
        counts = {"edges": len(weight), "words": n, "graphs": graph.n, "master": graph.master}
        args = native.pack("mean_weights", **arrays, **dict(zip(_WEIGHTS, weights, strict=True)), **counts)
        library().mpad_mean_weights(ctypes.byref(args))
    graph.__dict__["mean_weights"] = weights
    return weights


class _Edges:
    """A graph as a C structure, and the arrays that it points to."""

    def __init__(self, graph: Graph, width: int) -> None:
        self.words = self.sentences = None
        if isinstance(graph, SentenceGraph):
            self._arrays: tuple[Tensor, ...] = (graph.count.contiguous(),)
            kind = _PATH if graph.path else _CLIQUE
            shape = {"x_row": width, "documents": graph.n, "width": width, "kind": kind}
            self.sentences = native.pack("sentence_graph", size=self._arrays[0], **shape, mean=graph.mean)
            return
        batch = graph.batch
        ends = batch.size.contiguous(), batch.source.contiguous(), batch.target.contiguous()
        self._arrays = *ends, *mean_weights(graph)
        arrays = dict(zip(("size", "source", "target", *_WEIGHTS), self._arrays, strict=True))
        counts = {"words": len(graph.owner), "edges": len(batch.source), "graphs": graph.n}
        self.words = native.pack("word_graph", **arrays, **counts, x_row=width, width=width, master=graph.master)

    def in_c(self) -> Any:
        """Return the structure, to be copied into others."""
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
        before_norm = native.pack(
            "batch_norm", gamma=m.before_gamma, beta=m.before_beta, before=m.before1_bias, **means
        )
        means = {"running_mean": running[2], "running_var": running[3]}
        norm = native.pack("batch_norm", gamma=m.gamma, beta=m.beta, before=m.b1, **means)
        merge = rows >= _MANY
        call(
            "normed_round", "normed_round", graph=edges.in_c(), before_norm=before_norm, norm=norm, h=h,
            projected=x, v1=m.before1 if x is None else None, v2=m.before2, c2=m.before2_bias, w1=m.w1, w2=m.w2,
            b2=m.b2, bias=m.bias, w=m.w, u=m.u, v=m.v, saved=saved, out=out, scratch=memory,
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
        before_norm = native.pack("batch_norm", gamma=m.before_gamma, beta=m.before_beta)
        norm = native.pack("batch_norm", gamma=m.gamma, beta=m.beta)
        call(
            "normed_round_back", "normed_round_back", graph=ctx.edges.in_c(), before_norm=before_norm, norm=norm,
            g=g, h=h, projected=x, v1=m.before1 if x is None else None, v2=m.before2, w1=m.w1, w2=m.w2, b2=m.b2,
            w=m.w, u=m.u, v=m.v, saved=saved, d_h=d_h, grads=grads, scratch=memory, g_row=g.stride(0),
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
    """Gradients of an update's weights, in the order of the C buffer."""

    def __init__(self, parts: list[Tensor], width: int) -> None:
        d_w, d_u, d_v, d_w2, d_bias, d_b2, self.before = parts  # the last: of a bias before the message's ReLU
        maps = {"w": d_w, "u": d_u, "v": d_v, "w2": d_w2}
        self.named = {name: part.view(-1, width) for name, part in maps.items()} | {"bias": d_bias, "b2": d_b2}

    @staticmethod
    def sizes(width: int) -> list[int]:
        """Return how many numbers each has."""
        square = width * width
        return [3 * square, 2 * square, square, square, 3 * width, width, width]


def _update_workspace(width: int) -> int:
    """Return how many numbers a thread needs for the gradient of an update."""
    return 7 * width * width + 5 * width + (5 * native.BLOCK + native.STRIP) * width
