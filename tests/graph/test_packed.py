import numpy as np

from mpad.graph import graphs_of_words
from mpad.graph.packed import concatenate


def test_concatenate_puts_corpora_behind_one_another():
    first, _ = graphs_of_words(["a b. c", ""], per="sentence")
    joined = concatenate([first, first])
    assert len(joined) == 4 and joined.n_graphs == 2 * first.n_graphs
    assert joined.document_start.tolist() == [0, 2, 3, 5, 6]
    assert np.array_equal(joined.words[len(first.words) :], first.words)
    assert joined.edge_start[-1] == len(joined.source)
