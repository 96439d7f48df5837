import torch

from mpad.training.adam import Adam, Decay


def networks():
    torch.manual_seed(0)
    made = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 2), torch.nn.Embedding(40_000, 4))
    again = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 2), torch.nn.Embedding(40_000, 4))
    again.load_state_dict(made.state_dict())
    return made, again


def loss(network, x, words):
    return network[1](network[0](x + network[2](words))).square().sum()


ONE = torch.ones(1, dtype=torch.int64)


def test_it_is_torchs_adam():
    ours, plain = networks()
    steps = torch.zeros(1, dtype=torch.int64)
    adam, theirs = Adam(ours.parameters(), [0.01], steps), torch.optim.Adam(plain.parameters(), lr=0.01)
    for step in range(5):
        x, words = torch.randn(7, 4), torch.randint(40_000, (7,))
        for network, optimiser in ((ours, adam), (plain, theirs)):
            optimiser.zero_grad()
            loss(network, x, words).backward()
        steps += 1
        adam.step(ONE)
        theirs.step()
        if step == 2:
            adam.rates *= 0.5
            theirs.param_groups[0]["lr"] *= 0.5
    adam.release()
    for one, other in zip(ours.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6) and one.grad is None
        assert one.untyped_storage().nbytes() == 4 * one.numel()


def test_parameters_without_a_gradient_stay():
    network, _ = networks()
    adam, before = Adam(network.parameters(), [0.01], ONE.clone()), network[1].weight.clone()
    network[0](torch.randn(2, 4)).sum().backward()
    adam.step(ONE)
    assert torch.equal(network[1].weight, before)


def test_stacked_models_have_their_own_rates_and_steps():
    start = torch.randn(3, 50)
    stacked = torch.nn.Parameter(start.clone())
    alone = [torch.nn.Parameter(row.clone()) for row in start]
    rates, steps = (0.1, 0.2, 0.3), torch.zeros(3, dtype=torch.int64)
    optimisers = [torch.optim.Adam([row], lr=rate) for row, rate in zip(alone, rates, strict=True)]
    adam = Adam([stacked], rates, steps)
    for number in range(4):
        g, active = torch.randn(3, 50), torch.tensor([1, 1, number % 2])
        steps += active
        stacked.grad = g
        adam.step(active)
        for row, optimiser, own, takes in zip(alone, optimisers, g, active, strict=True):
            if takes:
                row.grad = own
                optimiser.step()
    assert torch.allclose(stacked, torch.stack([row.detach() for row in alone]), atol=1e-5)


def test_parameters_may_move():
    parameter = torch.nn.Parameter(torch.ones(40))
    adam = Adam([parameter], [0.1], ONE.clone())
    parameter.data = parameter.data.clone()
    parameter.grad = torch.ones(40)
    adam.step(ONE)
    assert torch.allclose(parameter, torch.full((40,), 0.9), atol=1e-6)


def test_a_state_is_put_back():
    network, again = networks()
    first, second = (Adam(model.parameters(), [0.01], ONE.clone()) for model in (network, again))
    loss(network, torch.randn(3, 4), torch.arange(3)).backward()
    first.step(ONE)
    second.load_state({name: value.clone() for name, value in first.state().items()})
    assert all(torch.equal(one, second.state()[name]) for name, one in first.state().items())


def test_weights_decay_towards_their_first_values():
    torch.manual_seed(0)
    network = torch.nn.Linear(4, 3)
    first = [parameter.detach().clone() for parameter in network.parameters()]
    adam = Adam(network.parameters(), [0.1], ONE.clone(), Decay(to_start=2.0))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 1.0
    adam.step(ONE)  # without a gradient, only the decay moves them: by 0.1 * 2 of the way
    for parameter, before in zip(network.parameters(), first, strict=True):
        torch.testing.assert_close(parameter.detach(), before + 0.8)


def test_without_decay_weights_stay_where_they_are():
    network = torch.nn.Linear(4, 3)
    adam = Adam(network.parameters(), [0.1], ONE.clone())
    with torch.no_grad():
        network.weight += 1.0
    before = network.weight.detach().clone()
    adam.step(ONE)
    torch.testing.assert_close(network.weight.detach(), before)
