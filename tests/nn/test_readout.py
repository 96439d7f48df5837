import pytest
import torch

from mpad.nn.readout import Attention, Readout
from mpad.nn.segments import Groups

GROUPS = Groups(lambda: torch.tensor([0, 0, 0, 2]), 3)


def test_attention_is_equation_7():
    torch.manual_seed(0)
    attention, h = Attention(3), torch.randn(4, 3)
    pooled, alpha = attention(h, GROUPS)
    score = torch.tanh(h @ attention.align.weight.t()) @ attention.context.weight[0]
    expected = score[:3].softmax(0)
    assert torch.allclose(alpha[:3], expected) and alpha[3] == 1
    assert torch.allclose(pooled[0], expected @ h[:3]) and torch.allclose(pooled[2], h[3])
    assert torch.equal(pooled[1], torch.zeros(3))  # a graph without words


def test_the_master_bypasses_attention_or_joins_it():
    torch.manual_seed(0)
    h = torch.randn(4 + 3, 3)
    skip, joined = Readout(3, skip=True), Readout(3, skip=False)
    (read, masters), alpha = skip(h, GROUPS, 4)
    assert read.shape == (3, 3) and torch.equal(masters, h[4:]) and alpha.shape == (4,)
    (read,), alpha = joined(h, GROUPS, 4)
    assert read.shape == (3, 3) and alpha.shape == (4,)
    assert torch.allclose(read[1], h[5])  # the empty graph has its master alone
    assert alpha[:3].sum() < 1


@pytest.mark.parametrize("authors", [True, False])
def test_gradients(authors):
    torch.manual_seed(0)
    readout = Readout(2, skip=True, authors=authors).double()
    h = torch.randn(7, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda h: tuple(readout(h, GROUPS, 4)[0]), h)
    values = tuple(readout.parameters())

    def run(*values):
        names = dict(readout.named_parameters())
        named = dict(zip(names, values, strict=True))
        return tuple(torch.func.functional_call(readout, named, (h.detach(), GROUPS, 4))[0])

    assert torch.autograd.gradcheck(run, values)


@pytest.mark.parametrize("authors", [True, False])
def test_the_derivative_by_hand_is_right(authors):
    torch.manual_seed(0)
    attention, h = Attention(4, authors).double(), torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    parameters = tuple(attention.parameters())

    def pooled(h, *values):
        named = dict(zip([name for name, _ in attention.named_parameters()], values, strict=True))
        return torch.func.functional_call(attention, named, (h, GROUPS))[0]

    assert torch.autograd.gradcheck(pooled, (h, *parameters))
