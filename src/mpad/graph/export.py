"""Packed graphs ↔ networkx, scipy, PyTorch Geometric.

Direction: in the paper row i of A holds the edges INCOMING on node i. networkx, scipy's graph routines and PyG use the
opposite, A[u, v] for u → v, so all exports are the transpose of the paper's A: an edge goes from a word to the word
that follows it. `to_scipy(..., incoming=True)` returns the paper's A.
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
_GraphArrays = tuple[Any, Any, Any, Any]


def to_networkx(graphs: PackedGraphs, index: int, vocabulary: Vocabulary | None = None, master: bool = False) -> Any:
    """Convert one graph to networkx.

    Parameters
    ----------
    graphs : PackedGraphs
        The graphs of a corpus.
    index : int
        The number of the graph.
    vocabulary : Vocabulary, optional
        Names the nodes; unknown words appear as `<unknown 17>`, by their spare row. Without one, nodes are word ids.
    master : bool, default=False
        Add the master node and its edges.

    Returns
    -------
    networkx.DiGraph

    """
    networkx = require("networkx", extra="graph")
    words, source, target, weight = _graph_arrays(graphs, index)
    names = [_node_name(number, vocabulary) for number in words.tolist()]
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
    """Convert one graph to a sparse adjacency matrix.

    Parameters
    ----------
    graphs : PackedGraphs
        The graphs of a corpus.
    index : int
        The number of the graph.
    incoming : bool, default=False
        Return the paper's A, whose rows are targets; otherwise rows are sources.
    master : bool, default=False
        Add the master node as the last row and column.

    Returns
    -------
    scipy.sparse.csr_array

    """
    words, source, target, weight = _graph_arrays(graphs, index)
    size = len(words)
    if master:
        every, center = np.arange(size), np.full(size, size)
        source = np.concatenate([source, every, center])
        target = np.concatenate([target, center, every])
        weight = np.concatenate([weight, np.ones(2 * size, np.float32)])
        size += 1
    rows, columns = (target, source) if incoming else (source, target)
    import scipy.sparse  # here: prediction does not need it

    return scipy.sparse.csr_array((weight, (rows, columns)), shape=(size, size))


def to_pyg(graphs: PackedGraphs, index: int) -> Any:
    """Convert one graph to PyTorch Geometric.

    Parameters
    ----------
    graphs : PackedGraphs
        The graphs of a corpus.
    index : int
        The number of the graph.

    Returns
    -------
    torch_geometric.data.Data
        x: word ids (n, 1); edge_index: sources and targets (2, edges); edge_weight: (edges,).

    """
    data = require("torch_geometric.data", extra="graph")
    torch = require("torch", extra="graph")
    words, source, target, weight = _graph_arrays(graphs, index)
    return data.Data(
        x=torch.from_numpy(words.astype(np.int64))[:, None],
        edge_index=torch.from_numpy(np.stack([source, target]).astype(np.int64)),
        edge_weight=torch.from_numpy(weight.copy()),
    )


def from_networkx(graphs: Iterable[Any], vocabulary: Vocabulary | Mapping[str, int] | None = None) -> PackedGraphs:
    """Pack networkx graphs, one per document.

    Parameters
    ----------
    graphs : iterable of networkx.Graph or networkx.DiGraph
        Edges point from a word to the next one; undirected graphs are linked both ways. The edge attribute `weight`
        defaults to 1. Self-loops are dropped, because the network's A has a zero diagonal.
    vocabulary : Vocabulary or mapping, optional
        Looks up the nodes, which are words; without one, nodes are word ids.

    Returns
    -------
    PackedGraphs

    """
    words, sources, targets, weights, nodes, edges = [], [], [], [], [0], [0]
    for number, graph in enumerate(graphs):
        ids = [_word_id(name, vocabulary, number) for name in graph.nodes]
        if len(set(ids)) != len(ids):
            raise InputError(f"graph {number}: two nodes have the same word id; each word may occur once")
        order = np.argsort(np.array(ids, np.int64), kind="stable")
        place = {name: place for place, name in enumerate([list(graph.nodes)[k] for k in order])}
        links = [(place[v], place[u], float(w)) for u, v, w in graph.edges(data="weight", default=1.0) if u != v]
        if not graph.is_directed():
            links += [(u, v, w) for v, u, w in links]
        links.sort()
        words += [ids[k] for k in order]
        targets += [v for v, _, _ in links]
        sources += [u for _, u, _ in links]
        weights += [w for _, _, w in links]
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


def _graph_arrays(graphs: PackedGraphs, index: int) -> _GraphArrays:
    if not 0 <= index < graphs.n_graphs:
        raise InputError(f"no graph {index}: there are {graphs.n_graphs:,}, counted from 0")
    nodes = slice(graphs.node_start[index], graphs.node_start[index + 1])
    edges = slice(graphs.edge_start[index], graphs.edge_start[index + 1])
    return graphs.words[nodes], graphs.source[edges], graphs.target[edges], graphs.weight[edges]


def _node_name(number: int, vocabulary: Vocabulary | None) -> str | int:
    if vocabulary is None:
        return number
    known = number < len(vocabulary)
    return vocabulary.words[number] if known else f"<unknown {number - len(vocabulary)}>"


def _word_id(name: Any, vocabulary: Vocabulary | Mapping[str, int] | None, graph: int) -> int:
    if vocabulary is None:
        if not isinstance(name, (int, np.integer)):
            raise InputError(f"graph {graph}: node {name!r} is not a word id; give a vocabulary to look words up in")
        return int(name)
    return vocabulary.id(str(name)) if isinstance(vocabulary, Vocabulary) else vocabulary[name]
