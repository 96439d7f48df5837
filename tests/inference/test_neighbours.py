import numpy as np
import pytest

from mpad.graph import graphs_of_words, to_scipy
from mpad.inference.maps import Bias
from mpad.inference.neighbours import Clique, Path, WordGraphs, WordNeighbours
from mpad.inference.segments import Groups

TEXTS = ["a b c a b d", "", "x", " ".join(f"w{k} the" for k in range(9)), "c c c"]


@pytest.mark.parametrize("master", [True, False])
@pytest.mark.parametrize("renormalise", [True, False])
def test_words_hear_what_the_matrix_says(master, renormalise):
    graphs, _ = graphs_of_words(TEXTS)
    words = Groups(graphs.node_start)
    n, g = words.n_rows, words.n
    matrix = np.zeros((n + g, n + g))
    for k in range(g):
        at = slice(graphs.node_start[k], graphs.node_start[k + 1])
        matrix[at, at] = to_scipy(graphs, k, incoming=True).toarray()
        if master:
            matrix[at, n + k] = matrix[n + k, at] = 1
    if renormalise:
        matrix /= np.maximum(matrix.sum(1, keepdims=True), 1e-30)
    matrix = matrix if master else matrix[:n, :n]
    x = np.random.default_rng(0).normal(size=(len(matrix), 3)).astype(np.float32)
    neighbours = WordNeighbours(WordGraphs(graphs, master, renormalise), 0, g, words)
    assert np.allclose(neighbours.aggregate(x), matrix @ x, atol=1e-5)
    x, bias = np.tile(x[:, :2], 8), Bias(np.linspace(-1, 1, 16, dtype=np.float32))
    expected = np.maximum(matrix @ x + bias.row, 0)
    assert np.allclose(neighbours.aggregate_relu(x, bias), expected, atol=1e-5)
    some = np.array([2, 0])
    assert np.allclose(neighbours.aggregate_relu(x, bias, some), expected[some], atol=1e-5)


def test_sentences_hear_the_others_or_the_one_before():
    documents = Groups(np.array([0, 3, 4]))
    x = np.array([[1.0], [2.0], [4.0], [8.0]], np.float32)
    assert Clique(documents, renormalise=True).aggregate(x).ravel().tolist() == [3, 2.5, 1.5, 0]
    assert Clique(documents, renormalise=False).aggregate(x).ravel().tolist() == [6, 5, 3, 0]
    assert Path(documents).aggregate(x).ravel().tolist() == [0, 1, 2, 0]
