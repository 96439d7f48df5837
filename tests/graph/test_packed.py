import numpy as np

from mpad.graph import graphs_of_words
from mpad.graph.packed import concatenate, take_documents, with_edges


def test_concatenate_puts_corpora_behind_one_another():
    first, _ = graphs_of_words(["a b. c", ""], per="sentence")
    joined = concatenate([first, first])
    assert len(joined) == 4 and joined.n_graphs == 2 * first.n_graphs
    assert joined.document_start.tolist() == [0, 2, 3, 5, 6]
    assert np.array_equal(joined.words[len(first.words) :], first.words)
    assert joined.edge_start[-1] == len(joined.source)


def test_versions_of_a_corpus_keep_their_own_edges():
    graphs, _ = graphs_of_words(["a b c. d", "", "e f"], per="sentence")
    kept = np.array([[True, False, True], [False, True, False], [True, True, True]])
    versions = with_edges(graphs, kept)
    assert len(versions) == 9 and versions.n_graphs == 3 * graphs.n_graphs
    for number, own in enumerate(kept):
        one = take_documents(versions, np.arange(3 * number, 3 * number + 3))
        assert np.array_equal(one.words, graphs.words) and np.array_equal(one.node_start, graphs.node_start)
        assert one.source.tolist() == graphs.source[own].tolist() and one.weight.tolist() == graphs.weight[own].tolist()
        assert one.edge_start.tolist() == [int(own[:end].sum()) for end in graphs.edge_start]
