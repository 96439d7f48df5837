"""Packed graphs ↔ networkx, scipy, PyTorch Geometric.

Direction: in the paper row i of A holds the edges INCOMING on node i. networkx, scipy's graph routines and PyG
mean the opposite, A[u, v] for u → v, so everything exported here is the transpose of the paper's A: an edge goes
from a word to the word that follows it. `to_scipy(..., incoming=True)` gives the paper's A.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mpad.errors import InputError
from mpad.extras import require
from mpad.graph.packed import PackedGraphs
from mpad.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    import scipy.sparse

MASTER = "<master>"
_Local = tuple[Any, Any, Any, Any]


def to_networkx(graphs: PackedGraphs, index: int, vocabulary: Vocabulary | None = None, master: bool = False) -> Any:
    """Give graph `index` as a networkx.DiGraph; nodes are words, or word ids without a vocabulary.

    Words that the vocabulary does not know appear as `<unknown 17>`, by their spare row. With `master`, the
    master node and its edges are written out.
    """
    networkx = require("networkx", extra="graph")
    words, source, target, weight = _local(graphs, index)
    names = [_name(number, vocabulary) for number in words.tolist()]
    graph = networkx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_weighted_edges_from(
        (names[u], names[v], w) for u, v, w in zip(source.tolist(), target.tolist(), weight.tolist(), strict=True)
    )
    if master:
        graph.add_node(MASTER)
        graph.add_weighted_edges_from((MASTER, name, 1.0) for name in names)
        graph.add_weighted_edges_from((name, MASTER, 1.0) for name in names)
    return graph


def to_scipy(
    graphs: PackedGraphs, index: int, incoming: bool = False, master: bool = False
) -> "scipy.sparse.csr_array":
    """Give graph `index` as a sparse matrix: row = source, or with `incoming` the paper's A: row = target.

    With `master`, the last row and column are the master node's.
    """
    words, source, target, weight = _local(graphs, index)
    size = len(words)
    if master:
        every, centre = np.arange(size), np.full(size, size)
        source = np.concatenate([source, every, centre])
        target = np.concatenate([target, centre, every])
        weight = np.concatenate([weight, np.ones(2 * size, np.float32)])
        size += 1
    rows, columns = (target, source) if incoming else (source, target)
    import scipy.sparse  # here: answering does not wait for it

    return scipy.sparse.csr_array((weight, (rows, columns)), shape=(size, size))


def to_pyg(graphs: PackedGraphs, index: int) -> Any:
    """Give graph `index` as a torch_geometric Data: x = word ids (n, 1), edge_index = (source, target)."""
    data = require("torch_geometric.data", extra="graph")
    torch = require("torch", extra="graph")
    words, source, target, weight = _local(graphs, index)
    return data.Data(
        x=torch.from_numpy(words.astype(np.int64))[:, None],
        edge_index=torch.from_numpy(np.stack([source, target]).astype(np.int64)),
        edge_weight=torch.from_numpy(weight.copy()),
    )


def from_networkx(graphs: Iterable[Any], vocabulary: Vocabulary | Mapping[str, int] | None = None) -> PackedGraphs:
    """Pack people's own graphs, one a document.

    Nodes are words (looked up in the vocabulary), or, without a vocabulary, word ids. Edges point from a word
    to the one that follows; undirected graphs are linked both ways. `weight` defaults to 1; self-loops are
    dropped, as the network's A has a zero diagonal.
    """
    words, sources, targets, weights, nodes, edges = [], [], [], [], [0], [0]
    for number, graph in enumerate(graphs):
        ids = [_id(name, vocabulary, number) for name in graph.nodes]
        if len(set(ids)) != len(ids):
            raise InputError(f"graph {number}: two nodes have the same word id; each word may stand once")
        order = np.argsort(np.array(ids, np.int64), kind="stable")
        place = {name: place for place, name in enumerate([list(graph.nodes)[k] for k in order])}
        listed = [(place[v], place[u], float(w)) for u, v, w in graph.edges(data="weight", default=1.0) if u != v]
        if not graph.is_directed():
            listed += [(u, v, w) for v, u, w in listed]
        listed.sort()
        words += [ids[k] for k in order]
        targets += [v for v, _, _ in listed]
        sources += [u for _, u, _ in listed]
        weights += [w for _, _, w in listed]
        nodes.append(len(words))
        edges.append(len(sources))
    return PackedGraphs(
        words=np.array(words, np.int32),
        node_start=np.array(nodes, np.int64),
        source=np.array(sources, np.int32),
        target=np.array(targets, np.int32),
        weight=np.array(weights, np.float32),
        edge_start=np.array(edges, np.int64),
        document_start=np.arange(len(nodes), dtype=np.int64),
    )


def _local(graphs: PackedGraphs, index: int) -> _Local:
    if not 0 <= index < graphs.n_graphs:
        raise InputError(f"no graph {index}: there are {graphs.n_graphs:,}, counted from 0")
    nodes = slice(graphs.node_start[index], graphs.node_start[index + 1])
    edges = slice(graphs.edge_start[index], graphs.edge_start[index + 1])
    return graphs.words[nodes], graphs.source[edges], graphs.target[edges], graphs.weight[edges]


def _name(number: int, vocabulary: Vocabulary | None) -> str | int:
    if vocabulary is None:
        return number
    known = number < len(vocabulary)
    return vocabulary.words[number] if known else f"<unknown {number - len(vocabulary)}>"


def _id(name: Any, vocabulary: Vocabulary | Mapping[str, int] | None, graph: int) -> int:
    if vocabulary is None:
        if not isinstance(name, (int, np.integer)):
            raise InputError(f"graph {graph}: node {name!r} is not a word id; give a vocabulary to look words up in")
        return int(name)
    return vocabulary.id(str(name)) if isinstance(vocabulary, Vocabulary) else vocabulary[name]
