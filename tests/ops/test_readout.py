"""The reference of READOUT against the paper's equations."""

import pytest
import torch

from mpad import ops
from mpad.ops import Segments

SEGMENTS = Segments(torch.tensor([0, 0, 0, 2]), torch.tensor([3, 0, 1]), None, None, 3, 1)


def test_attention_is_equation_7():
    torch.manual_seed(0)
    h, align, context = torch.randn(4, 3), torch.randn(3, 3), torch.randn(1, 3)
    pooled, alpha = ops.attention(h, SEGMENTS, align, None, context, False)
    expected = (torch.tanh(h @ align.T) @ context[0])[:3].softmax(0)
    assert torch.allclose(alpha[:3], expected) and alpha[3] == 1
    assert torch.allclose(pooled[0], expected @ h[:3]) and torch.allclose(pooled[2], h[3])
    assert torch.equal(pooled[1], torch.zeros(3))  # a graph without words
    bounded, _ = ops.attention(h, SEGMENTS, align, None, 100 * context, True)
    assert not torch.allclose(bounded, ops.attention(h, SEGMENTS, align, None, 100 * context, False)[0])


def read(states, skip, weights, width, by_batch=False, dtype=torch.float32):
    torch.manual_seed(1)
    every = len(states) * width * (1 + skip)
    dense, bias = torch.randn(width, every, dtype=dtype), torch.randn(width, dtype=dtype)
    gamma, beta = torch.ones(every, dtype=dtype), torch.zeros(every, dtype=dtype)
    running = [torch.zeros(every, dtype=dtype), torch.ones(every, dtype=dtype)]
    out = ops.readout(states, SEGMENTS, weights, gamma, beta, dense, bias, running, by_batch, 0.1, 1e-5, skip, False)
    return out, dense, bias


def test_the_master_bypasses_attention_or_joins_it():
    torch.manual_seed(0)
    h, weights = torch.randn(4 + 3, 3), [torch.randn(3, 3), None, torch.randn(1, 3), None, None]
    (vectors, alpha), dense, bias = read([h], True, weights, 3)
    pooled, expected = ops.attention(h[:4], SEGMENTS, weights[0], None, weights[2], False)
    joined = torch.cat([pooled, h[4:]], dim=1)
    assert torch.equal(alpha[0], expected) and alpha.shape == (1, 4)
    assert torch.allclose(vectors, torch.relu(joined @ dense.T + bias), atol=1e-4)
    (vectors, alpha), dense, bias = read([h], False, weights, 3)
    assert torch.allclose(vectors[1], torch.relu(h[5] @ dense.T + bias), atol=1e-4)  # the empty graph's master alone
    assert alpha.shape == (1, 4) and alpha[0, :3].sum() < 1


@pytest.mark.parametrize("by_batch", [True, False])
@pytest.mark.parametrize("skip", [True, False])
def test_gradients(by_batch, skip):
    torch.manual_seed(0)
    states = [torch.randn(7, 2, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    shapes = [(2, 2), (2,), (1, 2), (2, 2), (2,)] * 2
    weights = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]

    def vectors(first, second, *weights):
        return read([first, second], skip, list(weights), 2, by_batch, torch.float64)[0][0]

    assert torch.autograd.gradcheck(vectors, (*states, *weights), atol=1e-5)
