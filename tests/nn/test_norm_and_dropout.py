import torch

from mpad.nn.dropout import Dropout
from mpad.nn.norm import BatchNorm


def test_a_batch_of_one_trains():
    norm = BatchNorm(3).train()
    out = norm(torch.tensor([[1.0, 2.0, 3.0]]))
    assert torch.allclose(out, torch.tensor([[1.0, 2.0, 3.0]]), atol=1e-4)  # running mean 0, variance 1


def test_larger_batches_are_torchs():
    ours, theirs, x = BatchNorm(3).train(), torch.nn.BatchNorm1d(3).train(), torch.randn(5, 3)
    assert torch.allclose(ours(x), theirs(x))


def test_norm_gradients():
    norm, x = BatchNorm(2).double(), torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: torch.nn.functional.batch_norm(x, None, None, training=True), x)
    assert torch.autograd.gradcheck(norm.eval(), x)


def test_dropout_drops_its_share_and_keeps_the_mean():
    torch.manual_seed(0)
    dropout, x = Dropout(0.3).train(), torch.ones(1000, 101)
    out = dropout(x)
    assert abs((out == 0).float().mean() - 0.3) < 0.01 and abs(out.mean() - 1) < 0.01
    assert dropout.eval()(x) is x and Dropout(0.0).train()(x) is x


def test_dropout_gradients():
    x = torch.randn(9, dtype=torch.float64, requires_grad=True)

    def run(x):
        torch.manual_seed(0)
        return Dropout(0.5).train()(x)

    assert torch.autograd.gradcheck(run, x)
