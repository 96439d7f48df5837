import torch

from mpad.training.adam import FlatAdam


def networks():
    torch.manual_seed(0)
    made = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 2), torch.nn.Embedding(40_000, 4))
    again = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 2), torch.nn.Embedding(40_000, 4))
    again.load_state_dict(made.state_dict())
    return made, again


def loss(network, x, words):
    return network[1](network[0](x + network[2](words))).square().sum()


def test_flat_adam_is_torchs_adam():
    flat, plain = networks()
    ours, theirs = FlatAdam(flat.parameters(), 0.01), torch.optim.Adam(plain.parameters(), lr=0.01)
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


def test_parameters_without_a_gradient_stay():
    flat, _ = networks()
    optimiser, before = FlatAdam(flat.parameters(), 0.01), flat[1].weight.clone()
    flat[0](torch.randn(2, 4)).sum().backward()
    optimiser.step()
    assert torch.equal(flat[1].weight, before)
