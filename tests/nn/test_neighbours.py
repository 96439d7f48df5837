import numpy as np
import pytest
import torch

from mpad.graph import graphs_of_words, to_scipy
from mpad.graph.batch import CorpusTensors
from mpad.nn.neighbours import Clique, Path, WordNeighbours, mean

TEXTS = ["a b c a b d", "", "x", "b a. c. d e"]


def batch_of(per="document"):
    graphs, _ = graphs_of_words(TEXTS, per=per)
    return graphs, CorpusTensors(graphs).take(torch.arange(len(TEXTS)))


def written_out(graphs, master, renormalise):
    """D⁻¹ A of the whole batch as a dense matrix, words first, then masters."""
    n, g = len(graphs.words), graphs.n_graphs
    matrix = np.zeros((n + g, n + g)) if master else np.zeros((n, n))
    for k in range(g):
        local = to_scipy(graphs, k, incoming=True, master=master).toarray()
        place = [*range(graphs.node_start[k], graphs.node_start[k + 1]), *([n + k] if master else [])]
        matrix[np.ix_(place, place)] = local
    if renormalise:
        matrix /= np.maximum(matrix.sum(axis=1, keepdims=True), 1e-12)
    return torch.from_numpy(matrix)


@pytest.mark.parametrize("master", [True, False])
@pytest.mark.parametrize("renormalise", [True, False])
def test_words_get_the_mean_of_their_incoming_neighbours(master, renormalise):
    graphs, batch = batch_of()
    matrix = written_out(graphs, master, renormalise)
    x = torch.randn(matrix.shape[0], 3, dtype=torch.float64)
    assert torch.allclose(WordNeighbours(batch, master, renormalise).heard(x), matrix @ x, atol=1e-6)
    if renormalise:
        rows = matrix.sum(1)
        assert torch.all((rows - 1).abs().lt(1e-9) | (rows == 0))


@pytest.mark.parametrize("master", [True, False])
def test_gradients(master):
    _, batch = batch_of()
    neighbours = WordNeighbours(batch, master, True)
    n = batch.words.shape[0] + batch.n_graphs * master
    x = torch.randn(n, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: mean(neighbours, x), x, atol=1e-6)


def test_sentences_in_a_clique_hear_all_others():
    _, batch = batch_of("sentence")
    x = torch.randn(batch.n_graphs, 2)  # documents of 1, 1, 1 and 3 sentences
    heard = Clique(batch, renormalise=True).heard(x)
    assert torch.equal(heard[:3], torch.zeros(3, 2))
    assert torch.allclose(heard[3], (x[4] + x[5]) / 2, atol=1e-6)
    assert torch.allclose(Clique(batch, renormalise=False).heard(x)[4], x[3] + x[5], atol=1e-6)


def test_sentences_on_a_path_hear_the_one_before():
    _, batch = batch_of("sentence")
    x = torch.randn(batch.n_graphs, 2)
    heard = Path(batch).heard(x)
    assert torch.equal(heard[:4], torch.zeros(4, 2))
    assert torch.equal(heard[4], x[3]) and torch.equal(heard[5], x[4])


@pytest.mark.parametrize("kind", [Path, lambda batch: Clique(batch, True), lambda batch: Clique(batch, False)])
def test_gradients_between_sentences(kind):
    _, batch = batch_of("sentence")
    x = torch.randn(batch.n_graphs, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: mean(kind(batch), x), x)
