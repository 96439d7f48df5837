"""The yardstick for preparing data: the straightforward way, document by document.

Thirteen regular expressions clean a text, a dict collects the edges of each graph, a scipy matrix holds it, and
batches are padded to their largest graph through `lil_matrix`, with the master node written out as edges.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

MASTER = 0  # row of the master node, and of padding, in the yardstick's table of vectors; it is all zeros


def clean(text: str) -> list[str]:
    """Kim's clean_str, substitution by substitution."""
    text = re.sub(r"[^A-Za-z0-9(),!?\'\`]", " ", text)
    for ending in (r"\'s", r"\'ve", r"n\'t", r"\'re", r"\'d", r"\'ll"):
        text = re.sub(ending, " " + ending.replace("\\", ""), text)
    for mark, apart in ((",", " , "), ("!", " ! "), (r"\(", r" \( "), (r"\)", r" \) "), (r"\?", r" \? ")):
        text = re.sub(mark, apart, text)
    text = re.sub(r"\s{2,}", " ", text)
    return text.strip().lower().split()


def sentences_of(text: str) -> list[list[str]]:
    """Sentences as lists of words; at least one."""
    parts = [clean(part) for part in re.split(r"(?<=[.!?;])\s+", text)]
    return [words for words in parts if words] or [[]]


def learn_words(documents: Sequence[Sequence[list[str]]]) -> dict[str, int]:
    """Number the words from 1."""
    words: dict[str, int] = {}
    for document in documents:
        for sentence in document:
            for word in sentence:
                if word not in words:
                    words[word] = len(words) + 1
    return words


@dataclass
class Graph:
    """One graph of words: normalised adjacency (rows = targets) and word ids, the master node last."""

    adjacency: scipy.sparse.csr_matrix
    ids: list[int]


def graph_of(sentence: list[str], words: dict[str, int]) -> Graph:
    """Build one graph with window 2."""
    index: dict[str, int] = {}
    for word in sentence:
        index.setdefault(word, len(index))
    edges: dict[tuple[int, int], float] = {}
    for before, after in zip(sentence, sentence[1:], strict=False):
        if before != after:
            pair = (index[after], index[before])
            edges[pair] = edges.get(pair, 0.0) + 1.0
    master = len(index)
    for node in index.values():
        edges[master, node] = edges[node, master] = 1.0
    rows, columns = [row for row, _ in edges], [column for _, column in edges]
    shape = (master + 1, master + 1)
    adjacency = scipy.sparse.csr_matrix((list(edges.values()), (rows, columns)), shape=shape, dtype=np.float64)
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    return Graph((scipy.sparse.diags(inverse) @ adjacency).tocsr(), [words[word] for word in index] + [MASTER])


@dataclass
class PaddedBatch:
    """Documents padded to the largest of the batch: most graphs a document, most nodes a graph."""

    ids: Tensor  # (documents · max_graphs · max_nodes,), the master last in each graph
    adjacency: Tensor  # sparse, the same size squared
    is_word: Tensor  # (documents · max_graphs, max_nodes − 1)
    is_graph: Tensor  # (documents, max_graphs)
    clique: Tensor  # sparse, (documents · max_graphs) squared
    path: Tensor  # likewise
    labels: Tensor  # (documents,)


def padded_batch(documents: Sequence[Sequence[Graph]], labels: Sequence[int]) -> PaddedBatch:
    """Pad some documents into one batch."""
    most_graphs = max(len(document) for document in documents)
    most_nodes = max(len(graph.ids) for document in documents for graph in document)
    n_graphs = len(documents) * most_graphs
    size = n_graphs * most_nodes
    ids = np.zeros(size, np.int64)
    adjacency = scipy.sparse.lil_matrix((size, size))
    clique, path = (scipy.sparse.lil_matrix((n_graphs, n_graphs)) for _ in range(2))
    is_word = np.zeros((n_graphs, most_nodes - 1), bool)
    is_graph = np.zeros((len(documents), most_graphs), bool)
    for d, document in enumerate(documents):
        first, count = d * most_graphs, len(document)
        is_graph[d, :count] = True
        if count > 1:
            clique[first : first + count, first : first + count] = (1 - np.eye(count)) / (count - 1)
            path[first : first + count, first : first + count] = np.eye(count, k=-1)
        for g, graph in enumerate(document):
            start, n = (first + g) * most_nodes, len(graph.ids) - 1
            master = start + most_nodes - 1
            if n:
                adjacency[start : start + n, start : start + n] = graph.adjacency[:-1, :-1]
                adjacency[start : start + n, master] = graph.adjacency[:-1, -1].toarray()
                adjacency[master, start : start + n] = graph.adjacency[-1, :-1].toarray()
            ids[start : start + n] = graph.ids[:-1]
            is_word[first + g, :n] = True
    return PaddedBatch(
        torch.from_numpy(ids),
        _sparse(adjacency),
        torch.from_numpy(is_word),
        torch.from_numpy(is_graph),
        _sparse(clique),
        _sparse(path),
        torch.tensor(labels),
    )


def _sparse(matrix: scipy.sparse.lil_matrix) -> Tensor:
    coo = matrix.tocsr().tocoo().astype(np.float32)
    indices = torch.from_numpy(np.vstack([coo.row, coo.col]).astype(np.int64))
    return torch.sparse_coo_tensor(indices, torch.from_numpy(coo.data), coo.shape, check_invariants=False).coalesce()


def prepare(
    texts: Sequence[str], labels: Sequence[int], hierarchical: bool, batch_size: int = 128
) -> tuple[list[PaddedBatch], dict[str, int]]:
    """Raw text → padded batches, in order."""
    documents = [sentences_of(text) if hierarchical else [clean(text)] for text in texts]
    words = learn_words(documents)
    graphs = [[graph_of(sentence, words) for sentence in document] for document in documents]
    return [
        padded_batch(graphs[start : start + batch_size], labels[start : start + batch_size])
        for start in range(0, len(graphs), batch_size)
    ], words
