"""Bindings of the C kernels in `mpad.native`: few calls, and intermediate results that stay in the cache.

The bindings check sizes and types; the C code trusts them.
"""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import Array, Structure
from dataclasses import dataclass
from functools import cache
from math import prod
from threading import local
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from mpad import native
from mpad.dropout import ALL_BITS, FIRST, GOLDEN, SECOND, Dropout
from mpad.graph.batch import GraphBatch
from mpad.kernels.weights import RoundWeights, attention_weights, attentions, round_weights, running_averages
from mpad.model import BatchNorm, Graph, MessagePassing, Readout, SentenceGraph, WordGraph

PLAIN = {Tensor, torch.nn.Parameter}  # classes whose memory can be read; a tracer's tensors have none


@cache
def library() -> Any:
    """Return the library, set up to use torch's threads; None if either is missing."""
    native.report_missing()
    if native.library is None:
        return None
    try:  # torch has brought its OpenMP into the process
        process = ctypes.CDLL(None)
        threads = process.GOMP_parallel, process.omp_get_thread_num, process.omp_get_num_threads
    except (OSError, AttributeError, TypeError):
        return None
    native.library.mpad_threads(*[ctypes.cast(function, ctypes.c_void_p) for function in threads])
    return native.library


def takes(*tensors: Tensor | None) -> bool:
    """Return whether the library is available and these tensors are float32 in CPU memory."""
    if library() is None:
        return False
    for x in tensors:
        if x is not None and (x.dtype is not torch.float32 or not x.is_cpu or type(x) not in PLAIN):
            return False
    return True


def wants_gradient(*tensors: Tensor | None) -> bool:
    """Return whether a gradient may be needed for any of these."""
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


def call(name: str, structure: str, /, **fields: Any) -> None:
    """Run a kernel on as many threads as torch uses; `structure` names its argument in abi.h."""
    of = native.pack(structure, **fields)
    _kernel(name)(ctypes.addressof(of), torch.get_num_threads())


@cache
def _kernel(name: str) -> Any:
    kernel = getattr(library(), f"mpad_{name}")
    kernel.argtypes = [ctypes.c_void_p, ctypes.c_long]
    return kernel


def contiguous(*tensors: Tensor | None) -> list[Tensor | None]:
    """Return the tensors with contiguous memory."""
    return [None if x is None else x.contiguous() for x in tensors]


def by_rows(x: Tensor) -> Tensor:
    """Return x with each row contiguous and in memory of its own."""
    return x if x.stride(1) == 1 and x.stride(0) != 0 else x.contiguous()


_ALIGN = 16  # numbers
_SMALL = 1_024  # numbers that are not worth it


def _new(*shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device="cpu")


class _Workspace(local):
    """The memory of one thread; several threads may train at once."""

    def __init__(self) -> None:
        self.current: Tensor | None = None  # while a step lasts
        self.memory = _new(0)
        self.scratch = _new(0)
        self.used = 0  # numbers, by the last step
        self.markers = torch.empty(0, dtype=torch.int32, device="cpu")


_workspace = _Workspace()


def allocate(*shape: int) -> Tensor:
    """Allocate a float32 tensor that lives until the step ends."""
    n, memory, start = prod(shape), _workspace.current, _workspace.used
    if memory is None or n < _SMALL:
        return _new(*shape)
    _workspace.used = start + -(-n // _ALIGN) * _ALIGN
    if _workspace.used > memory.shape[0]:  # the next step will have enough
        return _new(*shape)
    cut = _new(0)  # no view: a tensor of its own, which autograd may keep while others are written
    cut.set_(memory.untyped_storage(), start, shape)  # type: ignore[call-overload]
    return cut


def scratch(n: int) -> Tensor:
    """Return memory for n numbers, valid until the next call."""
    if _workspace.scratch.shape[0] < n:
        _workspace.scratch = _new(n)
    return _workspace.scratch[:n]


def markers(n: int) -> Tensor:
    """Return n integers, all -1; the caller restores them to -1."""
    if len(_workspace.markers) < n:
        _workspace.markers = torch.full((n,), -1, dtype=torch.int32, device="cpu")
    return _workspace.markers


@contextmanager
def one_step() -> Iterator[None]:
    """Let `allocate` reuse memory inside this context; its tensors must not outlive it."""
    if _workspace.used > len(_workspace.memory):
        _workspace.memory = _new(0)  # first give back what was too small
        _workspace.memory = _new(_workspace.used)
    _workspace.current, _workspace.used = _workspace.memory, 0
    try:
        yield
    finally:
        _workspace.current = None


def release_workspace() -> None:
    """Free the memory."""
    _workspace.memory, _workspace.scratch, _workspace.used = _new(0), _new(0), 0
    _workspace.markers = torch.empty(0, dtype=torch.int32, device="cpu")


_Mask = tuple[int, int]  # key and threshold; a threshold of 0 drops nothing


def _mask(dropout: Dropout) -> _Mask:
    """Return the key and threshold of the masks of this call."""
    if not dropout.training or not dropout.p:
        return 0, 0
    counter = dropout.next_counter()
    key = (int(counter.seeds) * GOLDEN + int(counter.steps) * FIRST + dropout.layer * SECOND) & ALL_BITS
    return key ^ (key >> 29), int(dropout.threshold)


@dataclass(frozen=True)
class WordRows:
    """H⁰, the word vectors of a batch after dropout and a zero row per master node, computed when it is mapped."""

    table: Tensor  # (n_words, vector_width)
    words: Tensor  # (words,) int64
    masters: int
    mask: _Mask

    @classmethod
    def of(cls, table: Tensor, batch: GraphBatch, master: bool, dropout: Dropout) -> "WordRows | None":
        """Return the rows of a batch, or None if C does not support this table."""
        if not takes(table):
            return None
        return cls(table, batch.words, batch.n_graphs if master else 0, _mask(dropout))

    def __len__(self) -> int:
        return len(self.words) + self.masters

    def linear(self, *weights: Tensor) -> tuple[Tensor, ...]:
        """Return H⁰ Wᵀ for one or two weights of the same height: (rows, out) each."""
        return _mapped(self.table, self.words, self.masters, weights, self.mask)

    def dense(self) -> Tensor:
        """Return H⁰ itself: (rows, vector_width)."""
        table = self.table.contiguous()
        unique, index = distinct(self.words, 0, len(table))
        rows = _Rows.apply(table, unique, *self.mask)  # type: ignore[no-untyped-call]
        return F.pad(rows[index], (0, 0, 0, self.masters))


def _mapped(table: Tensor, index: Tensor, masters: int, weights: tuple[Tensor, ...], mask: _Mask) -> tuple[Tensor, ...]:
    words, place = distinct(index, masters, table.shape[0])
    table = table.contiguous()
    if table.requires_grad:
        rows = _Rows.apply(table, words, *mask)  # type: ignore[no-untyped-call]
    else:
        rows = _dropped_rows(table, words, False, *mask)
    mapped: tuple[Tensor, ...] = _Mapped.apply(rows, place, *weights)  # type: ignore[no-untyped-call]
    return mapped


def distinct(words: Tensor, masters: int, n_words: int) -> tuple[Tensor, Tensor]:
    """Return the distinct words and the place of each row among them; the place of masters is after the last."""
    words = words.contiguous()
    unique, index = torch.empty_like(words), torch.empty(words.shape[0] + masters, dtype=torch.int64)
    arrays = [ctypes.c_void_p(array.data_ptr()) for array in (words, markers(n_words), unique, index)]
    numbers = [ctypes.c_long(n) for n in (words.shape[0], masters, n_words)]
    n = library().mpad_distinct(arrays[0], *numbers, *arrays[1:])
    if n < 0:
        raise IndexError(f"words are numbered 0 to {n_words - 1}, but these are {words.min()} to {words.max()}")
    return unique[:n], index


class _Rows(torch.autograd.Function):
    """Distinct rows of a table after dropout."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, words: Tensor, key: int, threshold: int) -> Tensor:
        ctx.save_for_backward(words)
        ctx.mask, ctx.shape = (key, threshold), table.shape
        return _dropped_rows(table, words, False, key, threshold)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (words,) = ctx.saved_tensors
        rows = _dropped_rows(gradients[0].contiguous(), words, True, *ctx.mask)
        return rows.new_zeros(ctx.shape).index_copy_(0, words, rows), None, None, None


def _dropped_rows(x: Tensor, words: Tensor, in_place: bool, key: int, threshold: int) -> Tensor:
    y = allocate(words.shape[0], x.shape[1])
    shape = {"n": words.shape[0], "width": x.shape[1], "in_place": in_place}
    call(
        "embed", "dropout", x=x, which=words, y=y, **shape, key=key, threshold=threshold, scale=256 / (256 - threshold)
    )
    return y


class _Mapped(torch.autograd.Function):
    """One or two linear maps of rows that repeat: distinct rows are mapped once, then gathered by `index`.

    Gradients of the same row are summed before they are multiplied by the weights.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        mapped = torch.mm(rows, weight.t(), out=allocate(rows.shape[0], weight.shape[0]))
        y = allocate(index.shape[0], weight.shape[0])
        call("gather", "gather", x=mapped, index=index, y=y, rows=len(index), n=len(rows), width=len(weight))
        ctx.save_for_backward(rows, index, weight)
        ctx.width = weights[0].shape[0]
        slices: tuple[Tensor, ...] = y.split(ctx.width, dim=1)
        return slices

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, index, weight = ctx.saved_tensors
        slices = [by_rows(gradient) for gradient in gradients]
        first, second = slices[0], slices[-1]
        d_mapped = allocate(rows.shape[0], len(slices) * ctx.width)
        shape = {"rows": len(index), "n": len(rows), "width": d_mapped.shape[1], "slice": ctx.width}
        steps = {"first_row": first.stride(0), "second_row": second.stride(0)}
        call("scatter", "scatter", first=first, second=second, index=index, y=d_mapped, **steps, **shape)
        d_rows = d_mapped @ weight if ctx.needs_input_grad[0] else None
        return d_rows, None, *(d_mapped.t() @ rows).split(ctx.width)


def drop(x: Tensor, dropout: Dropout) -> Tensor:
    """Apply dropout to x, of any shape."""
    return _Dropout.apply(x, *_mask(dropout))  # type: ignore[no-any-return, no-untyped-call]


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, key: int, threshold: int) -> Tensor:
        ctx.mask = key, threshold
        return _dropped(x, key, threshold)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return _dropped(gradients[0], *ctx.mask), None, None


def _dropped(x: Tensor, key: int, threshold: int) -> Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    scale = 256 / (256 - threshold)
    call("drop", "dropout", x=x, y=y, n=x.numel(), width=1, in_place=True, key=key, threshold=threshold, scale=scale)
    return y


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
