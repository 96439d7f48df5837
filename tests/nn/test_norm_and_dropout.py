import pytest
import torch

from mpad.nn.dropout import Dropout
from mpad.nn.norm import BatchNorm


def test_a_batch_of_one_trains():
    norm = BatchNorm(3).train()
    out = norm(torch.tensor([[1.0, 2.0, 3.0]]))
    assert torch.allclose(out, torch.tensor([[1.0, 2.0, 3.0]]), atol=1e-4)  # running mean 0, variance 1


@pytest.mark.parametrize("width", [3, 16])  # the last is for compiled code
@pytest.mark.parametrize("training", [True, False])
def test_larger_batches_are_torchs(width, training):
    ours, theirs = BatchNorm(width).train(training), torch.nn.BatchNorm1d(width).train(training)
    x, g = torch.randn(40, width, requires_grad=True), torch.randn(40, width)
    found = []
    for norm in (ours, theirs):
        for _ in range(2):  # running averages move
            out = norm(x)
        found.append((out, *torch.autograd.grad(out, (x, *norm.parameters()), g), *norm.buffers()))
    for one, other in zip(*found, strict=True):
        assert one.dtype == torch.int64 or torch.allclose(one, other, atol=1e-5)


def test_norm_gradients():
    norm, x = BatchNorm(2).double(), torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(norm.train(), x)
    assert torch.autograd.gradcheck(norm.eval(), x)


def test_dropout_drops_its_share_and_keeps_the_mean():
    torch.manual_seed(0)
    dropout, x = Dropout(0.3).train(), torch.ones(1000, 101)
    out = dropout(x)
    assert abs((out == 0).float().mean() - 0.3) < 0.01 and abs(out.mean() - 1) < 0.01
    assert dropout.eval()(x) is x and Dropout(0.0).train()(x) is x


def test_dropout_gradients():
    x = torch.randn(9, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Dropout(0.5).train(), x)  # its noise hangs on the step, which stands still here
    single = torch.randn(500, requires_grad=True)  # for compiled code
    out = Dropout(0.5).train()(single)
    (gradient,) = torch.autograd.grad(out.sum(), single)
    assert torch.allclose(gradient * single, out) and set(gradient.tolist()) == {0.0, 2.0}
