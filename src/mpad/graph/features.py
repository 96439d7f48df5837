"""Node features: the mean of a word's transformer states over its occurrences in a graph."""

import tempfile
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from mpad.files.cache import cache_folder, make_private
from mpad.files.progress import slow_bar
from mpad.graph.packed import PackedGraphs, chunks
from mpad.text.contextual import Transformer
from mpad.text.tokenizer import Tokenizer
from mpad.text.vocabulary import EncodedCorpus

_CHUNK = 1 << 13  # words per chunk, a second or two of work
_IN_MEMORY = 1 << 30  # bytes; larger features are a memory-mapped file


def with_features(
    graphs: PackedGraphs,
    corpus: EncodedCorpus,
    texts: Sequence[str],
    tokenizer: Tokenizer,
    sentences: bool,
    transformer: Transformer,
    device: str = "cpu",
) -> PackedGraphs:
    """Return graphs with node features; `corpus` and `texts` are the ones that the graphs were built from."""
    features = _allocate((len(graphs.words), transformer.width))
    words = corpus.sentence_start[corpus.document_start]  # first word of each document
    nodes = graphs.node_start[graphs.document_start]
    node_of = nodes_of_words(graphs, corpus)
    with slow_bar(len(texts), "reading by transformer") as done:
        for first, last in chunks(words, _CHUNK):
            part = texts[first:last]
            states = transformer.word_states(part, [tokenizer.spans(text, sentences) for text in part], device)
            own = node_of[words[first] : words[last]] - nodes[first]
            features[nodes[first] : nodes[last]] = node_means(own, states, int(nodes[last] - nodes[first]))
            done(len(part))
    return PackedGraphs.built(**{**vars(graphs), "features": features})


def nodes_of_words(graphs: PackedGraphs, corpus: EncodedCorpus) -> NDArray[np.int64]:
    """Return the node of each word of the corpus that graphs were built from: (words,)."""
    # Nodes are sorted by graph and word id, and so are the keys.
    most = int(corpus.ids.max(initial=0)) + 1
    owner = np.repeat(np.arange(graphs.n_graphs), np.diff(corpus.sentence_start))
    node_owner = np.repeat(np.arange(graphs.n_graphs), np.diff(graphs.node_start))
    return np.searchsorted(node_owner * most + graphs.words, owner * most + corpus.ids)


def node_means(
    node_of: NDArray[np.int64], states: NDArray[np.floating], n: int, place: NDArray[np.int64] | None = None
) -> NDArray[np.float16]:
    """Average the states of the words of each of n nodes; word k has state k, or `place[k]` if given: (n, width)."""
    share = 1 / np.maximum(np.bincount(node_of, minlength=n), 1)
    columns = np.arange(len(node_of)) if place is None else place
    means = csr_matrix((share[node_of].astype(np.float32), (node_of, columns)), shape=(n, len(states)))
    return np.asarray(means @ states.astype(np.float32), np.float16)


def _allocate(shape: tuple[int, int]) -> NDArray[np.float16]:
    if 2 * shape[0] * shape[1] <= _IN_MEMORY:
        return np.empty(shape, np.float16)
    make_private(cache_folder())
    with tempfile.TemporaryFile(dir=cache_folder()) as file:  # it exists as long as it is mapped
        return np.memmap(file, np.float16, "w+", shape=shape)
