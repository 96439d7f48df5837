"""Bindings of the C kernels in `mpad.native`: few calls, and intermediate results that stay in the cache.

The bindings check sizes and types; the C code trusts them.
"""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import Structure
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from threading import local
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from mpad import native
from mpad.dropout import ALL_BITS, FIRST, GOLDEN, SECOND, Dropout
from mpad.graph.batch import GraphBatch
from mpad.model import BatchNorm, Gate, Graph, MessagePassing, Readout, SentenceGraph, WordGraph

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
        mapped: tuple[Tensor, ...] = _Mapped.apply(*self.distinct, *weights)  # type: ignore[no-untyped-call]
        return mapped

    def dense(self) -> Tensor:
        """Return H⁰ itself: (rows, vector_width)."""
        rows, place = self.distinct
        return F.pad(rows, (0, 0, 0, 1))[place]

    @cached_property
    def distinct(self) -> tuple[Tensor, Tensor]:
        """Return the rows of distinct words, and the place of each row of H⁰ among them."""
        table = self.table.contiguous()
        words, place = distinct(self.words, self.masters, len(table))
        return _Rows.apply(table, words, *self.mask), place  # type: ignore[no-untyped-call]


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
        mapped = allocate(len(rows) + 1, len(weight))
        torch.mm(rows, weight.t(), out=mapped[:-1])
        mapped[-1] = 0  # of masters
        y = torch.index_select(mapped, 0, index, out=allocate(len(index), len(weight)))
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


_MANY = 512  # rows; for fewer, merging W₂ into W costs more than it saves
_WORDS, _CLIQUE, _PATH = range(3)
_ATTENTION = "dense", "dense_b", "a", "b", "v"  # weights of each round's attention


def message_round(module: MessagePassing, h: Tensor | WordRows, graph: Graph) -> Any:
    """Run a round of the paper's or of the authors' kind; NotImplemented for anything else."""
    width, given = module.mlp1.out_features, h.table if isinstance(h, WordRows) else h
    norms = isinstance(module.before_norm, BatchNorm), isinstance(module.mlp_norm, BatchNorm)
    authors = module.before1 is not None and norms == (True, True) and not module.relu
    paper = module.before1 is None and norms == (False, False) and module.relu
    if not (authors or paper) or module.gate is None or not native.fits(width) or not _takes_graph(graph):
        return NotImplemented
    weights = _round_weights(module, module.gate)
    if not takes(given, *weights.values()) or (not isinstance(h, WordRows) and (h.ndim != 2 or h.shape[1] != width)):
        return NotImplemented
    _check_rows(graph, h)
    # One row has no variance, and norms by running averages have no gradient in C.
    if authors and (len(h) < 2 if module.training else wants_gradient(given, *weights.values())):
        return NotImplemented
    of = graph, tuple(weights), _norms(module) if authors else {}
    if isinstance(h, Tensor):
        return _Round.apply(h, None, of, *weights.values())  # type: ignore[no-untyped-call]
    first = module.mlp1 if module.before1 is None else module.before1
    mapped, *states = h.linear(*[first.weight] if module.project is None else [first.weight, module.project.weight])
    state = states[0] if states else None
    return _Round.apply(state, mapped, of, *weights.values())  # type: ignore[no-untyped-call]


def _round_weights(module: MessagePassing, gate: Gate) -> dict[str, Tensor]:
    """Return the weights of a round by their names in C; those of norms have a dot."""
    mlp1, mlp2, message = module.mlp1, module.mlp2, gate.from_message
    weights = {"w1": mlp1.weight, "b1": mlp1.bias, "w2": mlp2.weight, "b2": mlp2.bias}
    weights |= {"bias": message.bias, "w": message.weight, "u": gate.from_state.weight, "v": gate.from_reset.weight}
    if module.before1 is None or module.before2 is None:
        return weights
    weights |= {"v1": module.before1.weight, "v2": module.before2.weight, "c2": module.before2.bias}
    for name, norm in (("norm", module.mlp_norm), ("before_norm", module.before_norm)):
        weights |= {f"{name}.{weight}": parameter for weight, parameter in norm.named_parameters()}
    return weights


def _takes_graph(graph: Graph) -> bool:
    return isinstance(graph, SentenceGraph) or (
        isinstance(graph, WordGraph) and graph.edge_scale is None and takes(graph.batch.weight)
    )


def _check_rows(graph: Graph, h: Tensor | WordRows) -> None:
    """Check the number of rows: C would read and write outside of them."""
    rows = len(graph.owner) + (graph.n if isinstance(graph, WordGraph) and graph.master else 0)
    if len(h) != rows:
        raise ValueError(f"these graphs have {rows} rows (words, then master nodes; or sentences), not {len(h)}")


def _norms(module: MessagePassing) -> dict[str, Any]:
    """Return the fields of the C structure that belong to batch norm."""
    first, norm = module.before1, module.mlp_norm
    assert first is not None and isinstance(norm, BatchNorm)
    norms = {"before_norm": batch_norm(module.before_norm, first.bias), "norm": batch_norm(norm, module.mlp1.bias)}
    return {**norms, "by_batch": norm.training, "momentum": norm.momentum or 0.0, "eps": norm.eps}


def batch_norm(norm: nn.Module, before: Tensor | None = None) -> Structure:
    """Return a batch norm as a C structure; `before` is a bias that its input lacks."""
    averages = {name: getattr(norm, name) for name in ("running_mean", "running_var")}
    return native.pack("batch_norm", gamma=norm.weight, beta=norm.bias, before=before, **averages)


def _in_c(graph: Graph) -> Structure:
    """Return a graph as a C structure, kept with the graph along with its arrays: every round uses them."""
    known: tuple[Structure, list[Tensor]] | None = graph.__dict__.get("in_c")
    if known is not None:
        return known[0]
    counts = {"rows": len(graph.owner), "groups": graph.n, "mean": graph.mean}
    if isinstance(graph, SentenceGraph):
        arrays = {"size": graph.count.contiguous()}
        of = native.pack("graph", **arrays, **counts, kind=_PATH if graph.path else _CLIQUE)
    else:
        batch, raw = graph.batch, graph.batch.weight.contiguous()
        ends = {"size": batch.size, "source": batch.source, "target": batch.target}
        arrays = {name: end.contiguous() for name, end in ends.items()} | {"weight": torch.empty_like(raw)}
        arrays |= {"master_weight": raw.new_empty(len(graph.owner)), "word_weight": raw.new_empty(graph.n)}
        of = native.pack("graph", **arrays, **counts, kind=_WORDS, edges=len(raw), master=graph.master)
        library().mpad_mean_weights(ctypes.byref(of), ctypes.c_void_p(raw.data_ptr()))
    graph.__dict__["in_c"] = of, list(arrays.values())
    return of


# The order of gradients in the C buffer.
_GRADIENTS = "w u v w2 bias b2 b1 norm.weight norm.bias w1 v2 c2 before_norm.weight before_norm.bias v1".split()


class _Round(torch.autograd.Function):
    """H, or what the first linear map makes of it, or both → H'."""

    @staticmethod
    def forward(ctx: Any, h: Tensor | None, mapped: Tensor | None, of: Any, *given: Tensor) -> Tensor:
        ctx.graph, ctx.names, norms = of
        h, mapped = (None if x is None else by_rows(x) for x in (h, mapped))
        rows, width = (mapped if h is None else h).shape  # type: ignore[union-attr]
        ctx.options, weights = {**norms, "merge": bool(norms) and rows >= _MANY}, contiguous(*given)
        saved = allocate((9 * rows + 3 * width + 7) * width if norms else 5 * rows * width)
        out, memory = allocate(rows, width), scratch(max(7 * width, 2 * torch.get_num_threads()) * width)
        call("round", "round", **_round_fields(ctx, h, mapped, weights), saved=saved, out=out, scratch=memory)
        ctx.save_for_backward(h, mapped, saved, *weights)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (h, mapped, saved, *weights), g = ctx.saved_tensors, by_rows(gradients[0])
        rows, width = g.shape
        d_h, d_mapped = (None if x is None else allocate(rows, width) for x in (h, mapped))
        fields, of = _round_fields(ctx, h, mapped, weights), dict(zip(ctx.names, weights, strict=True))
        computed = [name for name in _GRADIENTS if name in of and ("." in name or name in fields)]
        sizes = [of[name].numel() for name in computed]
        grads, memory = allocate(sum(sizes)), 7 * width + 5 + 5 * native.BLOCK + native.STRIP
        call(
            "round_back", "round", **fields, saved=saved, g=g, g_row=g.stride(0), d_h=d_h, d_mapped=d_mapped,
            grads=grads, scratch=scratch((3 * rows + torch.get_num_threads() * memory) * width),
        )  # fmt: skip
        d = {name: part.view_as(of[name]) for name, part in zip(computed, grads.split(sizes), strict=True)}
        return d_h, d_mapped, None, *map(d.get, ctx.names)


def _round_fields(
    ctx: Any, h: Tensor | None, mapped: Tensor | None, weights: Sequence[Tensor | None]
) -> dict[str, Any]:
    """Return the fields that a round and its backward share; without the first linear map where it has been applied."""
    rows, width = (mapped if h is None else h).shape  # type: ignore[union-attr]
    strides = {f"{name}_row": x.stride(0) for name, x in (("h", h), ("mapped", mapped)) if x is not None}
    maps = {name: x for name, x in zip(ctx.names, weights, strict=True) if "." not in name}
    if mapped is not None:
        del maps["v1" if "v1" in maps else "w1"]
    own = {"graph": _in_c(ctx.graph), "h": h, "mapped": mapped, "rows": rows, "width": width}
    return {**own, **strides, **maps, **ctx.options}


def attention_weights(one: Any) -> tuple[Tensor | None, ...]:
    """Return weight and bias of the dense layer of an attention, W_A, its bias, and v."""
    dense = (None, None) if one.dense is None else (one.dense.weight, one.dense.bias)
    return *dense, one.align.weight, one.align.bias, one.context.weight


def mean_of_words(h: WordRows, graph: WordGraph) -> Tensor:
    """Return the mean of each graph's word vectors: (graphs, vector_width)."""
    rows, place = h.distinct
    size = graph.batch.size
    return F.embedding_bag(place[: len(h.words)], rows, size.cumsum(0) - size, mode="mean")


def pool(module: Readout, states: list[Tensor], graph: Graph) -> Any:
    """Pool the rows of each round; NotImplemented for what C does not support."""
    skip, size = module.skip, graph.count if isinstance(graph, SentenceGraph) else graph.batch.size
    attention = list(module.attention)
    learned = [x for one in attention for x in attention_weights(one)]
    rows, width = len(graph.owner) + (graph.n if skip else 0), states[0].shape[1]
    if any(x.shape != (rows, width) for x in states) or not takes(*states, *learned) or not native.fits(width):
        return NotImplemented
    counts = {"n": len(states), "words": len(graph.owner), "groups": graph.n, "master": skip}
    of = {"size": size.contiguous(), **counts, "width": width, "bounded": attention[0].bounded}
    return _Pool.apply(of, *states, *learned)  # type: ignore[no-untyped-call]


class _Pool(torch.autograd.Function):
    """States of every round → vectors, attention. `of` has the fields of the C structure that are not tensors."""

    @staticmethod
    def forward(ctx: Any, of: dict[str, Any], *given: Tensor) -> tuple[Tensor, Tensor]:
        n, words, groups, width = of["n"], of["words"], of["groups"], of["width"]
        states, weights = [by_rows(h) for h in given[:n]], contiguous(*given[n:])
        saved = allocate(n * (words * (width + 1) + 2 * groups * width))
        out, alpha = allocate(groups, n * width * (1 + of["master"])), torch.empty(n, words, dtype=torch.float32)
        columns = max(-(-width // native.PANEL) * native.PANEL, 2 * torch.get_num_threads())
        ctx.of = of
        fields = _pool_fields(of, states, [None] * n, weights, alpha)
        call("readout", "readout", **fields, saved=saved, out=out, scratch=scratch(columns * 2 * width))
        ctx.save_for_backward(saved, alpha, *states, *weights)
        ctx.mark_non_differentiable(alpha)
        return out, alpha

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        n, groups, width, (saved, alpha, *rest) = ctx.of["n"], ctx.of["groups"], ctx.of["width"], ctx.saved_tensors
        states, weights, g = rest[:n], rest[n:], by_rows(gradients[0])
        sizes = [0 if w is None else w.numel() for w in weights]
        need = torch.get_num_threads() * width * (width + 2 + native.BLOCK)
        grads, memory = allocate(sum(sizes)), scratch(groups * width + need)
        d_states = [allocate(h.shape[0], width) for h in states]
        fields = _pool_fields(ctx.of, states, d_states, weights, alpha)
        call("readout_back", "readout", **fields, g=g, g_row=g.stride(0), saved=saved, grads=grads, scratch=memory)
        d_weights = zip(weights, grads.split(sizes), strict=True)
        return None, *d_states, *(None if w is None else d.view(w.shape) for w, d in d_weights)


def _pool_fields(
    of: dict[str, Any],
    states: Sequence[Tensor],
    d_states: Sequence[Tensor | None],
    weights: Sequence[Tensor | None],
    alpha: Tensor,
) -> dict[str, Any]:
    """Return the fields that pooling and its backward share."""
    rounds = (native.structures["readout_round"] * len(states))()
    for t, (h, d_h) in enumerate(zip(states, d_states, strict=True)):
        maps = dict(zip(_ATTENTION, weights[t * len(_ATTENTION) :], strict=False))
        rounds[t] = native.pack("readout_round", h=h, **maps, alpha=alpha[t], d_h=d_h, h_row=h.stride(0))
    return {**of, "rounds": rounds}
