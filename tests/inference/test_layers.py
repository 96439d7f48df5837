import numpy as np
import pytest

from mpad.graph import graphs_of_words, to_scipy
from mpad.inference import layers
from mpad.inference.fold import Bias
from mpad.inference.layers import Clique, Groups, Path, WordGraphs, WordNeighbours


@pytest.mark.parametrize("dense", [True, False])
def test_sums_and_softmax_by_hand_with_empty_groups(dense, monkeypatch):
    if not dense:
        monkeypatch.setattr(layers, "_DENSE", 0)
    groups = Groups(np.array([0, 0, 2, 3, 3]))
    x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)
    assert groups.sum(x).tolist() == [[0, 0], [4, 6], [5, 6], [0, 0]]
    assert groups.sum(x, np.array([2, 1, 0], np.float32)).tolist() == [[0, 0], [5, 8], [0, 0], [0, 0]]
    alpha = groups.softmax(np.array([1000.0, 1000.0, -1000.0], np.float32))
    assert alpha.tolist() == [0.5, 0.5, 1.0]
    scores = np.array([1.0, -2.0, 3.0], np.float32)
    assert np.allclose(groups.softmax(scores, small=True), groups.softmax(scores))


def test_no_rows_at_all():
    groups = Groups(np.array([0, 0]))
    assert groups.sum(np.zeros((0, 3), np.float32)).tolist() == [[0, 0, 0]]
    assert groups.softmax(np.zeros(0, np.float32)).shape == (0,)


# ── Aggregation ──

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
