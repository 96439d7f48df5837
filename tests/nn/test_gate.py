import math

import pytest
import torch

from mpad.nn.gate import GatedUpdate, NeighboursOnly


def by_hand(gate, h, m):
    """Equation 6, number by number."""
    width = gate.width
    w, b = gate.from_message.weight.tolist(), gate.from_message.bias.tolist()
    u, v = gate.from_state.weight.tolist(), gate.from_reset.weight.tolist()

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
    gate, h, m = GatedUpdate(3), torch.randn(5, 3), torch.randn(5, 3)
    assert torch.allclose(gate(h, m), by_hand(gate, h, m), atol=1e-6)


def test_it_is_not_torchs_gru_cell():
    torch.manual_seed(0)
    gate, cell, h, m = GatedUpdate(3), torch.nn.GRUCell(3, 3), torch.randn(4, 3), torch.randn(4, 3)
    with torch.no_grad():
        cell.weight_ih.copy_(gate.from_message.weight)
        cell.bias_ih.copy_(gate.from_message.bias)
        cell.bias_hh.zero_()
        cell.weight_hh.copy_(torch.cat([gate.from_state.weight, gate.from_reset.weight]))
    assert not torch.allclose(gate(h, m), cell(m, h), atol=1e-3)


def test_gradients():
    torch.manual_seed(0)
    gate = GatedUpdate(3).double()
    h, m = (torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    parameters = tuple(gate.parameters())

    def run(h, m, *values):
        return torch.func.functional_call(gate, dict(zip(dict(gate.named_parameters()), values, strict=True)), (h, m))

    assert torch.autograd.gradcheck(run, (h, m, *parameters))


def plain(h, m, w, b, u, v):
    """Equation 6 as torch differentiates it."""
    width = h.shape[1]
    from_message = m @ w.T + b
    from_state = h @ u.T
    r, z = torch.sigmoid(from_message[:, : 2 * width] + from_state).chunk(2, dim=1)
    candidate = torch.tanh(from_message[:, 2 * width :] + (r * h) @ v.T)
    return (1 - z) * h + z * candidate


@pytest.mark.parametrize("width", [8, 16, 64])  # the last two are for compiled code
def test_the_hand_written_derivative_is_automatic_differentiations(width):
    torch.manual_seed(0)
    gate = GatedUpdate(width)
    h, m, g = (torch.randn(30, width, requires_grad=number < 2) for number in range(3))
    weights = gate.from_message.weight, gate.from_message.bias, gate.from_state.weight, gate.from_reset.weight
    ours, theirs = gate(h, m), plain(h, m, *weights)
    assert torch.allclose(ours, theirs, atol=1e-5)
    found = (torch.autograd.grad(out, (h, m, *weights), g) for out in (ours, theirs))
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_neighbours_only_forgets_the_node():
    h, m = torch.randn(2, 3), torch.randn(2, 3)
    assert NeighboursOnly()(h, m) is m
