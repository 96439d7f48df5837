"""Build packed word graphs from ids (paper, section "Word co-occurrence networks").

A window slides over the words of a document: a word v that follows u at a distance of 1 to window − 1 makes the edge
u → v. The corpus is built without a Python loop over words or documents: nodes are the distinct (graph, word) pairs
and edges the distinct (target, source) pairs, each found by sorting 64-bit keys.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mpad.errors import InputError
from mpad.graph.packed import Array, PackedGraphs, chunks, concatenate
from mpad.text.vocabulary import EncodedCorpus

_CHUNK = 1 << 17  # words per chunk: the keys stay in cache
_MOST_PAIRS = 1 << 25  # word pairs per chunk: a quarter of a gigabyte of keys


@dataclass(frozen=True)
class GraphConfig:
    """Options of the graph builder.

    Parameters
    ----------
    window : int, default=2
        Words less than `window` places apart co-occur; the paper's value is 2.
    directed : bool, default=True
        Edges follow the text; False links each pair both ways.
    weighting : {"count", "distance"}, default="count"
        A co-occurrence adds 1, or 1 / distance, to the weight of its edge.

    """

    window: int = 2
    directed: bool = True
    weighting: Literal["count", "distance"] = "count"

    def __post_init__(self) -> None:
        if not isinstance(self.window, (int, np.integer)) or self.window < 1:
            raise InputError(f"window must be at least 1 (1 makes no edges), a whole number, not {self.window!r}")
        if self.weighting not in ("count", "distance"):
            raise InputError(f"weighting must be 'count' or 'distance', not '{self.weighting}'")


def build_graphs(corpus: EncodedCorpus, config: GraphConfig | None = None) -> PackedGraphs:
    """Build one graph per sentence of an encoded corpus, or per document if it has no sentences.

    Parameters
    ----------
    corpus : EncodedCorpus
        The result of `Vocabulary.encode` or `learn_vocabulary`.
    config : GraphConfig, optional
        Window, direction and weighting of edges; None means the defaults.

    Returns
    -------
    PackedGraphs

    """
    config = config or GraphConfig()
    starts = corpus.sentence_start
    parts = [
        _build(corpus.ids[starts[first] : starts[last]], starts[first : last + 1] - starts[first], config)
        for first, last in chunks(starts, _CHUNK)
    ]
    graphs = concatenate(parts) if parts else _build(corpus.ids, np.zeros(1, np.int64), config)
    own = {"document_start": corpus.document_start, "new_words": corpus.new_words}
    return PackedGraphs.built(**{**vars(graphs), **own})


def _build(ids: NDArray[np.int32], starts: Array, config: GraphConfig) -> PackedGraphs:
    n_graphs = len(starts) - 1
    owner = np.repeat(np.arange(n_graphs), starts[1:] - starts[:-1])  # graph of each word occurrence
    node_of, words, node_owner = _nodes(ids, owner)
    node_start = np.concatenate([[0], np.cumsum(np.bincount(node_owner, minlength=n_graphs))]).astype(np.int64)
    source, target, weight = _edges(node_of, owner, len(words), config, int(np.diff(starts).max(initial=0)))
    edge_owner = node_owner[target]
    shift = node_start[:-1][edge_owner]
    return PackedGraphs.built(
        words=words.astype(np.int32),
        node_start=node_start,
        source=(source - shift).astype(np.int32),
        target=(target - shift).astype(np.int32),
        weight=weight.astype(np.float32),
        edge_start=np.concatenate([[0], np.cumsum(np.bincount(edge_owner, minlength=n_graphs))]).astype(np.int64),
        document_start=np.arange(n_graphs + 1, dtype=np.int64),
        count=np.bincount(node_of, minlength=len(words)).astype(np.int32),
    )


def _nodes(ids: NDArray[np.int32], owner: Array) -> tuple[Array, Array, Array]:
    """Return the node of each word occurrence, and word and graph of each node."""
    place_bits, word_bits = _bits(len(ids)), _bits(int(ids.max(initial=0)) + 1)
    # graph | word | place in one number: sorting values is several times faster than sorting indices.
    if place_bits + word_bits + _bits(int(owner[-1]) + 1 if len(owner) else 1) > 63:
        raise InputError(f"{len(ids):,} words of {1 << word_bits:,} kinds at once are too many for 64-bit keys")
    key = (owner << (word_bits + place_bits)) | (ids.astype(np.int64) << place_bits) | np.arange(len(ids))
    key.sort()
    place = key & ((1 << place_bits) - 1)
    pair = key >> place_bits
    is_first = _first_of_run(pair)
    node_of = np.empty(len(ids), np.int64)
    node_of[place] = np.cumsum(is_first) - 1
    distinct = pair[is_first]
    return node_of, distinct & ((1 << word_bits) - 1), distinct >> word_bits


def _edges(node_of: Array, owner: Array, n_nodes: int, config: GraphConfig, longest: int) -> tuple[Array, Array, Array]:
    """Return the distinct edges sorted by target, with summed weights; "very very" makes no edge."""
    window = min(config.window, longest)  # no pair of a graph is farther apart
    if window * len(node_of) > _MOST_PAIRS:
        raise InputError(
            f"a window of {config.window:,} over {len(node_of):,} words makes more than {_MOST_PAIRS:,} pairs of "
            "words: choose a smaller window, or cut the documents into shorter ones"
        )
    node_bits, distance_bits = _bits(n_nodes), _bits(window)
    keys = []
    for distance in range(1, window):
        before, after = node_of[:-distance], node_of[distance:]
        kept = (owner[:-distance] == owner[distance:]) & (before != after)
        before, after = before[kept], after[kept]
        keys.append(((after << node_bits | before) << distance_bits) | distance)
        if not config.directed:
            keys.append(((before << node_bits | after) << distance_bits) | distance)
    key = np.concatenate([np.zeros(0, np.int64), *keys])
    key.sort()
    pair = key >> distance_bits
    is_first = _first_of_run(pair)
    first = np.flatnonzero(is_first)
    if config.weighting == "count":
        weight = np.diff(first, append=len(pair)).astype(np.float64)
    else:
        share = 1.0 / np.maximum(key & ((1 << distance_bits) - 1), 1)
        weight = np.add.reduceat(share, first) if len(first) else np.zeros(0)
    distinct = pair[is_first]
    return distinct & ((1 << node_bits) - 1), distinct >> node_bits, weight


def _bits(n: int) -> int:
    """Return the number of bits for the numbers 0 … n."""
    return max(n, 1).bit_length()


def _first_of_run(ordered: Array) -> NDArray[np.bool_]:
    return np.concatenate([np.ones(min(len(ordered), 1), bool), ordered[1:] != ordered[:-1]])
