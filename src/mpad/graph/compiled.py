"""Cutting documents out of a corpus on a CPU, by native/batch.h."""

import ctypes
from ctypes import c_long

import torch
from torch import Tensor

from mpad import native

_CORPUS = (
    "words",
    "source",
    "target",
    "weight",
    "first_graph",
    "n_graphs",
    "first_node",
    "n_nodes",
    "first_edge",
    "n_edges",
)
_BATCH = "words", "owner", "size", "source", "target", "graph_owner", "graph_count", "weight"


def take(corpus: tuple[Tensor, ...], documents: Tensor) -> list[Tensor] | None:
    """Words, owner, size, source, target, graph_owner, graph_count and weight of a batch; None if it cannot be cut."""
    if documents.dtype != torch.int64:
        return None
    documents = documents.contiguous()
    of = native.pack("corpus", **dict(zip(_CORPUS, corpus, strict=True)), documents=len(corpus[4]))
    which, n = ctypes.c_void_p(documents.data_ptr()), c_long(len(documents))
    counts = (c_long * 3)()
    library = native.library
    if library is None or not library.mpad_count(ctypes.byref(of), which, n, counts):
        return None
    graphs, nodes, edges = counts
    sizes = nodes, nodes, graphs, edges, edges, graphs, len(documents)
    parts = [*torch.empty(sum(sizes), dtype=torch.int64, device="cpu").split(sizes), corpus[3].new_empty(edges)]
    to = native.pack("batch", **dict(zip(_BATCH, parts, strict=True)))
    library.mpad_take(ctypes.byref(of), which, n, ctypes.byref(to))
    return parts
