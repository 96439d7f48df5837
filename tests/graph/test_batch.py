import numpy as np
import torch

from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors

TEXTS = ["a b c a", "", "c d. e f c", "a"]


def named_edges(batch, vocabulary):
    names = [vocabulary.words[word] for word in batch.words.tolist()]
    listed = zip(batch.source.tolist(), batch.target.tolist(), batch.weight.tolist(), strict=True)
    return sorted((names[u], names[v], w) for u, v, w in listed)


def test_a_batch_is_its_documents_in_the_order_asked():
    graphs, vocabulary = graphs_of_words(TEXTS)
    corpus = CorpusTensors(graphs)
    batch = corpus.take(torch.tensor([2, 1, 0]))
    assert batch.size.tolist() == [4, 0, 3]
    assert batch.owner.tolist() == [0, 0, 0, 0, 2, 2, 2]
    assert batch.graph_owner.tolist() == [0, 1, 2] and batch.graph_count.tolist() == [1, 1, 1]
    alone = named_edges(corpus.take(torch.tensor([2])), vocabulary) + named_edges(
        corpus.take(torch.tensor([0])), vocabulary
    )
    assert named_edges(batch, vocabulary) == sorted(alone)
    assert all(batch.owner[u] == batch.owner[v] for u, v in zip(batch.source, batch.target, strict=True))


def test_documents_of_several_sentences():
    graphs, _ = graphs_of_words(TEXTS, per="sentence")
    batch = CorpusTensors(graphs).take(torch.tensor([3, 2, 2]))
    assert batch.graph_count.tolist() == [1, 2, 2]
    assert batch.graph_owner.tolist() == [0, 1, 1, 2, 2]
    assert batch.size.tolist() == [1, 2, 3, 2, 3]
    assert batch.n_documents == 3 and batch.n_graphs == 5


def test_sizes_count_the_master_nodes():
    graphs, _ = graphs_of_words(TEXTS, per="sentence")
    sizes = CorpusTensors(graphs).document_sizes(torch.tensor([0, 1, 2, 3]))
    assert sizes.tolist() == (graphs.document_sizes() + np.diff(graphs.document_start)).tolist()
