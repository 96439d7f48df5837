"""Each module that a backend runs, held to the plain one: results, running averages and gradients."""

import copy

import pytest
import torch
from tests.kernels.cases import Case, batch_of, cases, config_of

from mpad import kernels
from mpad.kernels import accelerate, cpu
from mpad.kernels.cpu import distinct
from mpad.model import MPAD, Dropout, MessagePassing, Readout, WordGraph

needs_library = pytest.mark.skipif(cpu.library() is None, reason="the compiled kernels were not built")


def tensors_of(given):
    for value in given:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_of(value)


def run(module, given):
    """Return the results, the buffers afterwards, and the gradients of inputs and parameters."""
    results = list(tensors_of([module(*given)]))
    wanted = [x for x in (*tensors_of(given), *module.parameters()) if x.requires_grad]
    torch.manual_seed(7)
    seeds = [torch.randn_like(x) for x in results if x.requires_grad]
    gradients = torch.autograd.grad([x for x in results if x.requires_grad], wanted, seeds, allow_unused=True)
    return results, [x for x in module.buffers() if x.is_floating_point()], gradients


def close(one, other, tolerance, largest):
    """A bias in front of a batch norm has no gradient in C; what autograd finds there is rounding."""
    if one is None or other is None:
        left = other if one is None else one
        return left is None or left.abs().max() < 1e-4 * largest
    scale = other.abs().max().clamp(min=1) if other.numel() else 1
    return torch.allclose(one / scale, other / scale, atol=tolerance)


@pytest.fixture
def taken(monkeypatch):
    """Record which calls C has run."""
    results = []

    def record(name):
        plain = getattr(kernels, name)

        def recorded(*given):
            result = plain(*given)
            results.append(result is not NotImplemented)
            return result

        monkeypatch.setattr(kernels, name, recorded)

    for name in ("message_round", "pool"):
        record(name)
    return results


@needs_library
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", cases(), ids=str)
def test_c_is_the_plain_module(case: Case, threads, taken):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        torch.manual_seed(1)
        plain, given = case.make()
        plain.train(case.training)
        fast = accelerate(copy.deepcopy(plain), True)
        again = copy.deepcopy(given) if all(isinstance(x, torch.Tensor) and x.is_leaf for x in given) else given
        expected, found = run(plain, given), run(fast, again)
    finally:
        torch.set_num_threads(before)
    for kind, ours, theirs in zip(("result", "buffer", "gradient"), found, expected, strict=True):
        assert len(ours) == len(theirs)
        largest = max((x.abs().max() for x in theirs if x is not None and x.numel()), default=1)
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            assert close(one, other, case.tolerance, largest), (kind, number)
    assert (taken == [True]) if case.taken else (True not in taken)


@needs_library
def test_every_replacement_is_taken_by_some_case(taken):
    names = {case.name.split(":")[0] for case in cases() if case.taken}
    assert names == {"round", "first round", "readout"}


def classes(network):
    replaced = MPAD, MessagePassing, Readout, Dropout
    return {type(module) for module in network.modules() if isinstance(module, replaced)}


def test_acceleration_can_be_turned_off(monkeypatch):
    network = MPAD(config_of(16))
    plain = classes(network)
    assert classes(accelerate(network, True)).isdisjoint(plain)
    assert classes(accelerate(network, False)) == plain
    monkeypatch.setenv("MPAD_KERNELS", "off")
    assert classes(accelerate(network)) == plain and not kernels.supports_static_batches(torch.device("cuda"))
    monkeypatch.delenv("MPAD_KERNELS")
    assert classes(accelerate(network)).isdisjoint(plain) and isinstance(network, MPAD)


def test_fast_networks_are_copied_and_saved_like_plain_ones():
    network = accelerate(MPAD(config_of(16)), True)
    again = copy.deepcopy(network)
    assert type(again) is type(network) and list(again.state_dict()) == list(MPAD(config_of(16)).state_dict())


@needs_library
def test_c_refuses_rows_that_are_not_the_graph_s():
    module = accelerate(MessagePassing(config_of(16), 16, first=False), True)
    for master in (True, False):
        with pytest.raises(ValueError, match=r"rows"):
            module(torch.zeros(5, 16), WordGraph(batch_of(), master, True))


@needs_library
def test_c_refuses_words_that_the_table_does_not_have():
    for words in ([0, 6], [-2, 1]):
        with pytest.raises(IndexError):
            distinct(torch.tensor(words), 0, 6)
