"""The references of AGGREGATE and COMBINE against the paper's equations, written out."""

import math

import numpy as np
import pytest
import torch
from tests.ops.cases import static_batch

from mpad import ops
from mpad.graph import graphs_of_words, to_scipy
from mpad.graph.batch import CorpusTensors
from mpad.ops import RoundWeights, UpdateWeights
from mpad.ops.graph import StaticWordGraph

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
    received = ops.aggregate(x, ops.word_graph(batch, master, renormalise, masked=False))
    assert torch.allclose(received, matrix @ x, atol=1e-6)
    if renormalise:
        rows = matrix.sum(1)
        assert torch.all((rows - 1).abs().lt(1e-9) | (rows == 0))


def test_an_edge_that_carries_nothing_leaves_denominators_alone():
    graphs, batch = batch_of()
    matrix, x = written_out(graphs, True, True), torch.randn(len(graphs.words) + 4, 3, dtype=torch.float64)
    scale = torch.zeros(len(batch.weight), dtype=torch.float64)
    received = ops.aggregate(x, ops.word_graph(batch, True, True, False, scale))
    n = len(graphs.words)
    matrix[:n, :n] = 0
    assert torch.allclose(received, matrix @ x, atol=1e-6)


@pytest.mark.parametrize("master", [True, False])
def test_gradients(master):
    _, batch = batch_of()
    x = torch.randn(batch.n_words + batch.n_graphs * master, 2, dtype=torch.float64, requires_grad=True)
    scale = torch.rand(len(batch.weight), dtype=torch.float64, requires_grad=True)

    def received(x, scale):
        return ops.aggregate(x, ops.word_graph(batch, master, True, False, scale))

    assert torch.autograd.gradcheck(received, (x, scale), atol=1e-6)


def test_sentences_in_a_clique_receive_of_all_others():
    _, batch = batch_of("sentence")
    x = torch.randn(batch.n_graphs, 2)  # documents of 1, 1, 1 and 3 sentences
    received = ops.aggregate(x, ops.sentence_graph(batch, path=False, renormalise=True))
    assert torch.equal(received[:3], torch.zeros(3, 2))
    assert torch.allclose(received[3], (x[4] + x[5]) / 2, atol=1e-6)
    summed = ops.aggregate(x, ops.sentence_graph(batch, path=False, renormalise=False))
    assert torch.allclose(summed[4], x[3] + x[5], atol=1e-6)


def test_sentences_on_a_path_receive_of_the_one_before():
    _, batch = batch_of("sentence")
    x = torch.randn(batch.n_graphs, 2)
    received = ops.aggregate(x, ops.sentence_graph(batch, path=True, renormalise=True))
    assert torch.equal(received[:4], torch.zeros(4, 2))
    assert torch.equal(received[4], x[3]) and torch.equal(received[5], x[4])


@pytest.mark.parametrize("path", [True, False])
def test_rows_that_are_not_the_graphs_are_refused(path):
    _, batch = batch_of("sentence")
    with pytest.raises(ValueError, match=r"6 sentences.*5 rows"):
        ops.aggregate(torch.zeros(5, 2), ops.sentence_graph(batch, path, True))
    with pytest.raises(ValueError, match="words, then master nodes"):
        ops.aggregate(torch.zeros(5, 2), ops.word_graph(batch, True, True, False))


@pytest.mark.parametrize("master", [True, False])
@pytest.mark.parametrize("renormalise", [True, False])
def test_a_static_batch_has_the_same_edges(master, renormalise):
    batch, models = static_batch("sentence")
    graph = ops.word_graph(batch, master, renormalise, masked=False)
    assert isinstance(graph, StaticWordGraph)
    n = batch.node.shape[1]
    x = torch.randn(2, n + batch.base.shape[1] * master, 3)
    received = ops.aggregate(x, graph)
    for model, own in enumerate(models):
        alone = ops.word_graph(own, master, renormalise, masked=False)
        words, graphs = own.n_words, own.n_graphs
        rows = torch.cat([x[model, :words], x[model, n : n + graphs]]) if master else x[model, :words]
        found = torch.cat([received[model, :words], received[model, n : n + graphs * master]])
        assert torch.allclose(ops.aggregate(rows, alone), found, atol=1e-6)


# ── COMBINE ──


def gate_of(width, dtype=torch.float32):
    torch.manual_seed(0)
    shapes = (3 * width,), (3 * width, width), (2 * width, width), (width, width)
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def by_hand(gate, h, m):
    """Equation 6, number by number."""
    b, w, u, v = (part.tolist() for part in gate)
    width = h.shape[1]

    def dot(row, x):
        return sum(p * q for p, q in zip(row, x, strict=True))

    def sigmoid(x):
        return 1 / (1 + math.exp(-x))

    out = []
    for h_row, m_row in zip(h.tolist(), m.tolist(), strict=True):
        r = [sigmoid(dot(w[k], m_row) + dot(u[k], h_row) + b[k]) for k in range(width)]
        z = [sigmoid(dot(w[width + k], m_row) + dot(u[width + k], h_row) + b[width + k]) for k in range(width)]
        reset = [p * q for p, q in zip(r, h_row, strict=True)]
        c = [math.tanh(dot(w[2 * width + k], m_row) + dot(v[k], reset) + b[2 * width + k]) for k in range(width)]
        out.append([(1 - z[k]) * h_row[k] + z[k] * c[k] for k in range(width)])
    return torch.tensor(out)


def test_the_gate_is_equation_6():
    gate, h, m = gate_of(3), torch.randn(5, 3), torch.randn(5, 3)
    updated = ops.gated_update(h, m, UpdateWeights(None, None, *gate), False)
    assert torch.allclose(updated, by_hand(gate, h, m), atol=1e-6)


def test_it_is_not_torchs_gru_cell():
    (b, w, u, v), cell, h, m = gate_of(3), torch.nn.GRUCell(3, 3), torch.randn(4, 3), torch.randn(4, 3)
    with torch.no_grad():
        cell.weight_ih.copy_(w)
        cell.bias_ih.copy_(b)
        cell.bias_hh.zero_()
        cell.weight_hh.copy_(torch.cat([u, v]))
    assert not torch.allclose(
        ops.gated_update(h, m, UpdateWeights(None, None, b, w, u, v), False), cell(m, h), atol=1e-3
    )


def round_weights(in_width, width, dtype=torch.float32):
    torch.manual_seed(1)
    first = torch.randn(width, in_width, dtype=dtype), torch.randn(width, dtype=dtype)
    second = torch.randn(width, width, dtype=dtype), torch.randn(width, dtype=dtype)
    return RoundWeights(*(None,) * 6, *first, None, None, *second, *gate_of(width, dtype))


def test_a_round_is_equations_4_to_6():
    graphs, batch = batch_of()
    graph, weights = ops.word_graph(batch, True, True, False), round_weights(3, 3)
    h = torch.randn(len(graphs.words) + 4, 3)
    inbox = (written_out(graphs, True, True).float() @ h) @ weights.w1.T + weights.b1
    message = torch.relu(torch.relu(inbox) @ weights.w2.T + weights.b2)
    expected = by_hand(weights[-4:], h, message)
    found = ops.message_round(h, None, graph, weights, [], True, 0.1, 1e-5, True)
    assert torch.allclose(found, expected, atol=1e-5)
    given = ops.message_round(h, h @ weights.w1.T, graph, weights, [], True, 0.1, 1e-5, True)
    assert torch.allclose(given, expected, atol=1e-5)
    neighbours_only = weights._replace(bias=None, w=None, u=None, v=None)
    forgetful = ops.message_round(h, None, graph, neighbours_only, [], True, 0.1, 1e-5, True)
    assert torch.allclose(forgetful, message, atol=1e-5)


def test_the_biases_before_a_norm_have_gradients_only_by_running_averages():
    _, batch = batch_of()
    weights = round_weights(16, 16)
    extra = {"before1": torch.randn(16, 16), "before1_bias": torch.randn(16), "before2": torch.randn(16, 16)}
    extra |= {"before2_bias": torch.randn(16), "before_gamma": torch.rand(16), "before_beta": torch.rand(16)}
    weights = weights._replace(**extra, gamma=torch.rand(16), beta=torch.rand(16))
    weights = RoundWeights(*[part.detach().requires_grad_() for part in weights])
    graph, h = ops.word_graph(batch, True, True, False), torch.randn(batch.n_words + batch.n_graphs, 16)
    running = [torch.zeros(16), torch.ones(16), torch.zeros(16), torch.ones(16)]
    for by_batch in (True, False):
        out = ops.message_round(h, None, graph, weights, running, by_batch, 0.1, 1e-5, False)
        biases = weights.before1_bias, weights.b1
        gradients = torch.autograd.grad(out.square().sum(), biases, allow_unused=True)
        assert all((gradient is None) == by_batch for gradient in gradients)
