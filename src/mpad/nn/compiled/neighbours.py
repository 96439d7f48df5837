"""What nodes hear of their neighbours (nn/neighbours.py), graph by graph."""

import ctypes
from ctypes import Structure
from dataclasses import dataclass

import torch
from torch import Tensor

from mpad import native
from mpad.nn.compiled import at, by_rows, call
from mpad.nn.compiled.memory import empty


class _Mean(Structure):
    _fields_ = native.fields(
        "size source target weight share part bias x y", "x_row words edges graphs width master back"
    )


class _Shares(Structure):
    _fields_ = native.fields("target size weight divided share part", "edges words graphs master")


class _Among(Structure):
    _fields_ = native.fields("size x bias y", "x_row documents width kind mean")


CLIQUE, PATH, PATH_BACK = range(3)


@dataclass(frozen=True)
class Graph:
    """Who hears whom, for passes that hear on their way: a structure whose rows are still to be filled in."""

    words: _Mean | None
    sentences: _Among | None
    arrays: tuple[Tensor, ...]  # that it points to

    def at(self) -> tuple[int | None, int | None]:
        """Where it begins."""
        words, sentences = self.words, self.sentences
        return None if words is None else ctypes.addressof(words), None if sentences is None else ctypes.addressof(
            sentences
        )


@dataclass(frozen=True)
class Edges:
    """The edges of graphs of words whose rows stand graph by graph, sorted by target, and masters' rows last."""

    arrays: tuple[Tensor, ...]  # words of each graph; source, target and weight of each edge; share, part
    words: int
    master: bool

    def check(self, x: Tensor) -> None:
        """C would read and write beyond other rows."""
        rows = self.words + (self.arrays[0].shape[0] if self.master else 0)
        if x.shape[0] != rows:
            raise ValueError(f"these graphs have {rows} rows (words, and masters behind them), but x has {x.shape[0]}")

    def in_c(self, x: Tensor) -> Graph:
        """For such rows."""
        self.check(x)
        width = x.shape[1]
        shape = width, self.words, self.arrays[1].shape[0], self.arrays[0].shape[0], width, self.master, False
        return Graph(_Mean(*at((*self.arrays, None, None, None)), *shape), None, self.arrays)


def mean(edges: Edges, x: Tensor, bias: Tensor | None = None, back: bool = False) -> Tensor:
    """D⁻¹ A x, or ReLU(D⁻¹ A x + b), or (D⁻¹ A)ᵀ x."""
    edges.check(x)
    x = by_rows(x)
    y = empty(*x.shape)
    shape = x.stride(0), edges.words, edges.arrays[1].shape[0], edges.arrays[0].shape[0], x.shape[1], edges.master, back
    call("mean", _Mean(*at((*edges.arrays, bias, x, y)), *shape))
    return y


def shares(target: Tensor, size: Tensor, weight: Tensor, words: int, master: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Weights of edges, divided by all that come to their target; what a master is left; a word's part in its own."""
    found = [torch.empty(n, dtype=weight.dtype, device="cpu") for n in (weight.shape[0], words, size.shape[0])]
    of = _Shares(*at((target, size, weight, *found)), weight.shape[0], words, size.shape[0], master)
    native.library.mpad_shares(ctypes.byref(of))  # type: ignore[union-attr]
    return found[0], found[1], found[2]


def among(sizes: Tensor, x: Tensor, kind: int, renormalise: bool, bias: Tensor | None = None) -> Tensor:
    """What each sentence of documents of these sizes hears, or ReLU of that and a bias: (sentences, width)."""
    x = by_rows(x)
    y = empty(*x.shape)
    of = _Among(*at((sizes, x, bias, y)), x.stride(0), sizes.shape[0], x.shape[1], kind, renormalise)
    native.library.mpad_among(ctypes.byref(of))  # type: ignore[union-attr]
    return y


def among_in_c(sizes: Tensor, sentences: int, x: Tensor, kind: int, renormalise: bool) -> Graph:
    """The same, for passes that hear on their way."""
    if x.shape[0] != sentences:
        raise ValueError(f"these documents have {sentences} sentences, but x has {x.shape[0]} rows")
    width = x.shape[1]
    of = _Among(*at((sizes, None, None, None)), width, sizes.shape[0], width, kind, renormalise)
    return Graph(None, of, (sizes,))
