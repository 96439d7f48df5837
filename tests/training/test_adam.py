import pytest
import torch

from mpad.nn import compiled
from mpad.training.adam import FlatAdam, make_adam

BOTH = pytest.mark.parametrize("make", [FlatAdam, make_adam])  # the latter is compiled, where it was built


def networks():
    torch.manual_seed(0)
    made = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 2), torch.nn.Embedding(40_000, 4))
    again = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 2), torch.nn.Embedding(40_000, 4))
    again.load_state_dict(made.state_dict())
    return made, again


def loss(network, x, words):
    return network[1](network[0](x + network[2](words))).square().sum()


@BOTH
def test_it_is_torchs_adam(make):
    flat, plain = networks()
    ours, theirs = make(list(flat.parameters()), 0.01), torch.optim.Adam(plain.parameters(), lr=0.01)
    for step in range(5):
        x, words = torch.randn(7, 4), torch.randint(40_000, (7,))
        for network, optimiser in ((flat, ours), (plain, theirs)):
            optimiser.zero_grad()
            loss(network, x, words).backward()
            optimiser.step()
        if step == 2:
            ours.scale_learning_rate(0.5)
            theirs.param_groups[0]["lr"] *= 0.5
    ours.release()
    for one, other in zip(flat.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)
        assert one.untyped_storage().nbytes() == 4 * one.numel()


@BOTH
def test_parameters_without_a_gradient_stay(make):
    flat, _ = networks()
    optimiser, before = make(list(flat.parameters()), 0.01), flat[1].weight.clone()
    flat[0](torch.randn(2, 4)).sum().backward()
    optimiser.step()
    assert torch.equal(flat[1].weight, before)


def test_stacked_models_and_other_numbers_are_torchs():
    network, _ = networks()
    assert isinstance(make_adam(list(network.double().parameters()), 0.01), FlatAdam)
    assert isinstance(make_adam(list(network.float().parameters()), 0.01), FlatAdam) != compiled.takes(torch.zeros(1))
    stacked = [torch.nn.Parameter(torch.zeros(2, 3))]
    assert isinstance(make_adam(stacked, [0.01, 0.02]), FlatAdam)


def test_parameters_may_move():
    parameter = torch.nn.Parameter(torch.ones(40))
    optimiser = make_adam([parameter], 0.1)
    parameter.data = parameter.data.clone()
    parameter.grad = torch.ones(40)
    optimiser.step()
    assert torch.allclose(parameter, torch.full((40,), 0.9), atol=1e-6)
