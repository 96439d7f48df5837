"""Each equation of the paper, written out by hand, against `mpad.model`."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from mpad.config import MPADConfig
from mpad.graph import graphs_of_words, to_scipy
from mpad.graph.batch import CorpusTensors
from mpad.model import (
    Attention,
    BatchNorm,
    Gate,
    MessagePassing,
    Readout,
    SentenceGraph,
    WordGraph,
    segment_softmax,
    segment_sum,
)

TEXTS = ["a b c a b d", "", "x", "b a. c. d e"]
OWNER = torch.tensor([0, 0, 2, 2, 2])


def batch_of(per="document"):
    graphs, _ = graphs_of_words(TEXTS, per=per)
    return graphs, CorpusTensors(graphs).take(torch.arange(len(TEXTS)))


def config_of(hidden, **options):
    return MPADConfig(2, hidden, 9, hidden=hidden, **options)


# ── Segments ──


def test_sums_and_empty_segments():
    x = torch.arange(10.0).view(5, 2)
    assert segment_sum(x, OWNER, 4).tolist() == [[2, 4], [0, 0], [18, 21], [0, 0]]


def test_softmax_is_torchs_within_each_segment():
    score = torch.tensor([1.0, 2.0, -3.0, 0.5, 700.0])
    alpha = segment_softmax(score, OWNER, 4)
    assert torch.allclose(alpha[:2], score[:2].softmax(0)) and torch.allclose(alpha[2:], score[2:].softmax(0))


def test_gradients_of_a_softmax():
    score = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: segment_softmax(s, OWNER, 4), score)


# ── AGGREGATE (eq. 4) ──


def sentences(batch, path, mean):
    return SentenceGraph(batch.graph_owner, batch.graph_count, path, mean)


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
def test_words_get_the_mean_of_their_incoming_neighbors(master, renormalise):
    graphs, batch = batch_of()
    matrix = written_out(graphs, master, renormalise)
    x = torch.randn(matrix.shape[0], 3, dtype=torch.float64)
    received = WordGraph(batch, master, renormalise).aggregate(x)
    assert torch.allclose(received, matrix @ x, atol=1e-6)
    if renormalise:
        rows = matrix.sum(1)
        assert torch.all((rows - 1).abs().lt(1e-9) | (rows == 0))


def test_an_edge_that_carries_nothing_leaves_denominators_alone():
    graphs, batch = batch_of()
    matrix, x = written_out(graphs, True, True), torch.randn(len(graphs.words) + 4, 3, dtype=torch.float64)
    scale = torch.zeros(len(batch.weight), dtype=torch.float64)
    received = WordGraph(batch, True, True, scale).aggregate(x)
    n = len(graphs.words)
    matrix[:n, :n] = 0
    assert torch.allclose(received, matrix @ x, atol=1e-6)


@pytest.mark.parametrize("master", [True, False])
def test_gradients_of_the_mean(master):
    _, batch = batch_of()
    x = torch.randn(batch.n_words + batch.n_graphs * master, 2, dtype=torch.float64, requires_grad=True)
    scale = torch.rand(len(batch.weight), dtype=torch.float64, requires_grad=True)

    def received(x, scale):
        return WordGraph(batch, master, True, scale).aggregate(x)

    assert torch.autograd.gradcheck(received, (x, scale), atol=1e-6)


def test_sentences_in_a_clique_receive_of_all_others():
    _, batch = batch_of("sentence")
    x = torch.randn(batch.n_graphs, 2)  # documents of 1, 1, 1 and 3 sentences
    received = sentences(batch, False, True).aggregate(x)
    assert torch.equal(received[:3], torch.zeros(3, 2))
    assert torch.allclose(received[3], (x[4] + x[5]) / 2, atol=1e-6)
    summed = sentences(batch, False, False).aggregate(x)
    assert torch.allclose(summed[4], x[3] + x[5], atol=1e-6)


def test_sentences_on_a_path_receive_of_the_one_before():
    _, batch = batch_of("sentence")
    x = torch.randn(batch.n_graphs, 2)
    received = sentences(batch, True, True).aggregate(x)
    assert torch.equal(received[:4], torch.zeros(4, 2))
    assert torch.equal(received[4], x[3]) and torch.equal(received[5], x[4])


def test_rows_that_are_not_the_graphs_are_refused():
    _, batch = batch_of("sentence")
    with pytest.raises(ValueError, match="master nodes"):
        WordGraph(batch, True, True).aggregate(torch.zeros(5, 2))


# ── COMBINE (eqs. 5, 6) ──


def by_hand(gate, h, m):
    """Equation 6, number by number."""
    maps = gate.from_message.bias, gate.from_message.weight, gate.from_state.weight, gate.from_reset.weight
    b, w, u, v = (part.tolist() for part in maps)
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
    torch.manual_seed(0)
    gate, h, m = Gate(3), torch.randn(5, 3), torch.randn(5, 3)
    assert torch.allclose(gate(h, m), by_hand(gate, h, m), atol=1e-6)


def test_the_gate_is_not_torchs_gru_cell():
    torch.manual_seed(0)
    gate, cell, h, m = Gate(3), nn.GRUCell(3, 3), torch.randn(4, 3), torch.randn(4, 3)
    with torch.no_grad():
        cell.weight_ih.copy_(gate.from_message.weight)
        cell.bias_ih.copy_(gate.from_message.bias)
        cell.bias_hh.zero_()
        cell.weight_hh.copy_(torch.cat([gate.from_state.weight, gate.from_reset.weight]))
    assert not torch.allclose(gate(h, m), cell(m, h), atol=1e-3)


def test_a_round_is_equations_4_to_6():
    torch.manual_seed(0)
    graphs, batch = batch_of()
    h, graph = torch.randn(len(graphs.words) + 4, 3), WordGraph(batch, True, True)
    for combine in ("gru", "identity"):
        module = MessagePassing(config_of(3, combine=combine), 3, first=False)
        inbox = module.mlp1(written_out(graphs, True, True).float() @ h)
        message = torch.relu(module.mlp2(torch.relu(inbox)))
        expected = message if module.gate is None else by_hand(module.gate, h, message)
        assert torch.allclose(module(h, graph), expected, atol=1e-5)


# ── READOUT (eqs. 7, 8) ──


def test_attention_is_equation_7():
    torch.manual_seed(0)
    h, owner, module = torch.randn(4, 3), torch.tensor([0, 0, 0, 2]), Attention(config_of(3), 3)
    pooled, alpha = module(h, owner, 3)
    score = torch.tanh(h @ module.align.weight.T) @ module.context.weight[0]
    assert torch.allclose(alpha[:3], score[:3].softmax(0)) and alpha[3] == 1
    assert torch.allclose(pooled[0], alpha[:3] @ h[:3]) and torch.allclose(pooled[2], h[3])
    assert torch.equal(pooled[1], torch.zeros(3))  # a graph without words
    module.bounded = True
    bounded = torch.tanh(score[:3]).softmax(0)
    assert torch.allclose(module(h, owner, 3)[1][:3], bounded)


@pytest.mark.parametrize("skip", [True, False])
def test_the_master_bypasses_attention_or_joins_it(skip):
    torch.manual_seed(0)
    _, batch = batch_of()
    graph, module = WordGraph(batch, True, True), Readout(config_of(3), 3, 1, skip, more=0).eval()
    n = len(batch.words)
    h = torch.randn(n + graph.n, 3)
    vectors, alpha = module([h], graph)
    if skip:
        pooled, expected = module.attention[0](h[:n], batch.owner, graph.n)
        joined = torch.cat([pooled, h[n:]], dim=1)
        assert torch.equal(alpha[0], expected)
    else:
        owner = torch.cat([batch.owner, torch.arange(graph.n)])
        joined, _ = module.attention[0](h, owner, graph.n)
        assert torch.allclose(joined[1], h[n + 1])  # the master alone in an empty graph
        assert alpha[0, : int(batch.size[0])].sum() < 1
    assert torch.allclose(vectors, torch.relu(module.dense(module.norm(joined))), atol=1e-5) and alpha.shape == (1, n)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("skip", [True, False])
def test_gradients_of_the_readout(training, skip):
    torch.manual_seed(0)
    _, batch = batch_of()
    module = Readout(config_of(2), 2, 2, skip, more=0).double().train(training)
    states = [torch.randn(len(batch.words) + 4, 2, dtype=torch.float64, requires_grad=True) for _ in range(2)]

    def vectors(*states):
        return module(list(states), WordGraph(batch, True, True))[0]

    assert torch.autograd.gradcheck(vectors, tuple(states), atol=1e-5)


# ── Batch norm ──


def test_a_batch_of_one_trains():
    assert torch.allclose(
        BatchNorm(3).train()(torch.tensor([[1.0, 2.0, 3.0]])), torch.tensor([[1.0, 2.0, 3.0]]), atol=1e-4
    )


@pytest.mark.parametrize("training", [True, False])
def test_larger_batches_are_torchs(training):
    ours, theirs, x = BatchNorm(3).train(training), nn.BatchNorm1d(3).train(training), torch.randn(40, 3)
    for _ in range(2):  # running averages move
        assert torch.equal(ours(x), theirs(x))
    assert torch.equal(ours.running_mean, theirs.running_mean) and torch.equal(ours.running_var, theirs.running_var)
