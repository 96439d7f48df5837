import pytest
import torch

from mpad import ops


def norm(x, layer, before=None, relu=False, mask=None):
    running = [layer.running_mean, layer.running_var]
    how = layer.training, layer.momentum, layer.eps, relu
    return ops.batch_norm(x, before, layer.weight, layer.bias, running, mask, *how)


def test_a_batch_of_one_trains():
    out = norm(torch.tensor([[1.0, 2.0, 3.0]]), torch.nn.BatchNorm1d(3).train())
    assert torch.allclose(out, torch.tensor([[1.0, 2.0, 3.0]]), atol=1e-4)  # running mean 0, variance 1


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_larger_batches_are_torchs(training, before):
    ours, theirs = torch.nn.BatchNorm1d(3).train(training), torch.nn.BatchNorm1d(3).train(training)
    x, g = torch.randn(40, 3, requires_grad=True), torch.randn(40, 3)
    bias = torch.randn(3) if before else None
    shifted = x if bias is None else x + bias
    found = []
    for layer, run in ((ours, lambda: norm(x, ours, bias)), (theirs, lambda: theirs(shifted))):
        for _ in range(2):  # running averages move
            out = run()
        averages = layer.running_mean.clone(), layer.running_var.clone()
        found.append((out, *torch.autograd.grad(out, (x, *layer.parameters()), g, retain_graph=True), *averages))
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_stacked_models_are_normalised_by_their_own_rows_and_padding_counts_nowhere():
    torch.manual_seed(0)
    x, mask = torch.randn(3, 6, 2), torch.tensor([[1.0] * 6, [1.0] * 4 + [0.0] * 2, [1.0] + [0.0] * 5])[..., None]
    stacked = torch.nn.BatchNorm1d(2)
    stacked.weight = torch.nn.Parameter(torch.rand(3, 2))
    stacked.bias = torch.nn.Parameter(torch.rand(3, 2))
    stacked.running_mean, stacked.running_var = torch.rand(3, 2), torch.rand(3, 2)
    start = stacked.running_mean.clone(), stacked.running_var.clone()
    before = torch.rand(3, 2)
    out = norm(x, stacked, before, relu=True, mask=mask)
    for model, rows in enumerate((6, 4, 1)):
        alone = torch.nn.BatchNorm1d(2)
        with torch.no_grad():
            alone.weight.copy_(stacked.weight[model])
            alone.bias.copy_(stacked.bias[model])
        alone.running_mean, alone.running_var = start[0][model].clone(), start[1][model].clone()
        expected = norm(x[model, :rows], alone, before[model], relu=True)
        assert torch.allclose(out[model, :rows], expected, atol=1e-5)
        assert torch.allclose(stacked.running_mean[model], alone.running_mean, atol=1e-6)
        assert torch.allclose(stacked.running_var[model], alone.running_var, atol=1e-6)


def test_gradients():
    layer, x = torch.nn.BatchNorm1d(2).double(), torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: norm(x, layer.train(), bias), x)
    assert torch.autograd.gradcheck(lambda x, bias: norm(x, layer.eval(), bias), (x, bias))
