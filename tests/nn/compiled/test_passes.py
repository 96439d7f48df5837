"""The compiled passes and the torch code compute the same."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.nn import compiled
from mpad.nn.compiled import memory
from mpad.nn.gate import GatedUpdate, update_backward, update_forward
from mpad.nn.linear import Linear
from mpad.nn.neighbours import WordNeighbours
from mpad.nn.readout import Attention
from mpad.nn.segments import Groups

TEXTS = ["a b c a b d. e f", "", "x", "b a. c. d e f g. a b", "the end. is near", "c c c", "a b. b a. a b a c a"] * 9

built = pytest.mark.skipif(not compiled.takes(torch.zeros(1)), reason="the compiled passes were not built")


def update(rows, width, hears, relu, before):
    """A function that updates random rows and takes the gradients."""
    torch.manual_seed(rows)
    h = torch.randn(rows, 2 * width)[:, width:]  # a part of wider rows, as at the first step
    x, g = torch.randn(rows, width).relu(), torch.randn(rows, width)
    shapes = (width, width), (width,), (3 * width,), (3 * width, width), (2 * width, width), (width, width)
    w2, b2, bias, *maps = (torch.randn(shape) * 0.2 for shape in shapes)

    def run():
        hear, gate = (w2, b2, relu) if hears else None, (bias, *maps)
        updated, kept = update_forward(h, x, hear, gate)
        found = update_backward(g, h, x, kept, hear, gate, before)
        return [updated, kept[1], found.h, found.x, found.before, *found.hear, *found.gate]

    return run


@built
@pytest.mark.parametrize(("hears", "relu", "before"), [(True, True, True), (True, False, False), (False, False, False)])
@pytest.mark.parametrize(("rows", "width"), [(1, 16), (77, 48), (300, 64), (130, 128), (50, 256), (0, 16)])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_an_update_and_its_gradients(rows, width, hears, relu, before, threads, by_torch, on_threads):
    run = update(rows, width, hears, relu, before)
    with on_threads(threads):
        for ours, theirs in zip(run(), by_torch(run), strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                assert torch.allclose(ours, theirs, atol=1e-4, rtol=1e-4)


@built
@pytest.mark.parametrize("master", [True, False])
@pytest.mark.parametrize("renormalise", [True, False])
def test_means_and_what_they_give_back(master, renormalise, by_torch):
    graphs, _ = graphs_of_words(TEXTS)
    torch.manual_seed(0)
    batch = CorpusTensors(graphs).take(torch.randperm(len(TEXTS)))
    x = torch.randn(batch.n_words + (batch.n_graphs if master else 0), 64)[:, 16:48]
    bias = torch.randn(32)

    def run():
        neighbours = WordNeighbours(batch, master, renormalise)  # divides weights by degrees
        return neighbours.heard(x), neighbours.heard_relu(x, bias), neighbours.transposed(x)

    for ours, theirs in zip(run(), by_torch(run), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


@built
@pytest.mark.parametrize("authors", [True, False])
@pytest.mark.parametrize("behind", [0, 4])
@pytest.mark.parametrize("width", [16, 64])
def test_attention_and_its_gradients(authors, behind, width, by_torch):
    torch.manual_seed(width)
    sizes = torch.tensor([3, 0, 70, 1])
    rows = int(sizes.sum())
    attention = Attention(width, authors)
    owner = torch.repeat_interleave(torch.arange(4), sizes)
    groups = Groups(lambda: owner, 4, None, sizes)
    h = torch.randn(rows + behind, width, requires_grad=True)

    def run():
        pooled, alpha, rest = attention.beside(h, groups, rows)
        loss = (pooled * torch.arange(1.0, 5.0)[:, None]).sum() + (rest**2).sum()
        return [pooled, alpha, rest, *torch.autograd.grad(loss, [h, *attention.parameters()])]

    for ours, theirs in zip(run(), by_torch(run), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4, rtol=1e-4)


@built
def test_a_step_finds_the_memory_of_the_one_before():
    run = update(400, 16, True, True, True)
    expected = [None if part is None else part.clone() for part in run()]
    places = []
    for _ in range(3):
        with memory.one_step():
            found = run()
            places.append(found[0].data_ptr())
            for ours, theirs in zip(found, expected, strict=True):
                assert ours is theirs is None or torch.equal(ours, theirs)
    assert places[1] == places[2]
    memory.forget()


@built
def test_what_is_done_between_steps_takes_no_room():
    run = update(400, 16, True, True, True)
    with memory.one_step():
        run()
    needed = memory._room.used
    for _ in range(5):
        run()  # as an evaluation does
    with memory.one_step():
        run()
    assert memory._room.used == len(memory._room.kept) == needed
    memory.forget()


@built
def test_steps_of_two_threads_do_not_share_memory():
    places, meet = [], threading.Barrier(2)

    def train():
        for _ in range(2):
            with memory.one_step():
                found = update(400, 16, True, True, True)()
                meet.wait()
        places.append(found[0].data_ptr())

    threads = [threading.Thread(target=train) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(places)) == 2


@built
def test_fewer_threads_than_asked_for_do_all_the_work():
    code = (
        "import torch, tests.nn.compiled.test_passes as t; torch.set_num_threads(4); "
        "ours = t.update(300, 16, True, True, True)(); t.compiled.takes = lambda x: False; "
        "theirs = t.update(300, 16, True, True, True)(); "
        "assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(ours, theirs))"
    )
    limited = {**os.environ, "OMP_THREAD_LIMIT": "2"}
    subprocess.run([sys.executable, "-c", code], env=limited, cwd=Path(__file__).parents[3], check=True)


def test_other_rows_are_left_to_torch(monkeypatch):
    assert not compiled.run_on(torch.zeros(2, 15)) and not compiled.run_on(torch.zeros(2, 512))
    assert not compiled.run_on(torch.zeros(2, 16, dtype=torch.float64)) and not compiled.run_on(torch.zeros(2, 3, 16))
    monkeypatch.setattr(compiled, "library", lambda: None)
    assert not compiled.run_on(torch.zeros(2, 16))


@built
def test_weights_that_do_not_lie_end_to_end(by_torch):
    torch.manual_seed(0)
    gate, (h, m) = GatedUpdate(32), torch.randn(2, 50, 32)
    gate.from_reset.weight = torch.nn.Parameter(torch.randn(32, 32).t())
    h.requires_grad_()

    def run():
        updated = gate(h, m)
        return updated, *torch.autograd.grad((updated**2).sum(), [h, *gate.parameters()])

    for ours, theirs in zip(run(), by_torch(run), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4, rtol=1e-4)


@built
def test_another_default_type_changes_nothing():
    graphs, _ = graphs_of_words(TEXTS)
    weight = CorpusTensors(graphs).take(torch.arange(len(TEXTS))).weight
    torch.set_default_dtype(torch.float64)
    try:
        batch = CorpusTensors(graphs).take(torch.arange(len(TEXTS)))
        neighbours = WordNeighbours(batch, True, True)
        ones = torch.ones(batch.n_words + batch.n_graphs, 16, dtype=torch.float32)
        with memory.one_step():
            heard = neighbours.heard(ones)
            assert heard.dtype == torch.float32 and torch.allclose(heard[batch.n_words :][batch.size > 0], ones[:1])
        assert torch.equal(batch.weight, weight)
    finally:
        torch.set_default_dtype(torch.float32)
        memory.forget()


@built
def test_scratch_does_not_pile_up():
    layers = torch.nn.Sequential(*[Linear(64, 64) for _ in range(20)])
    memory.forget()
    with memory.one_step():
        layers(torch.randn(4, 64)).sum().backward()
        assert memory._room.used < 20 * 64 * 65 + 10_000  # gradients, and no turned weights beside them
    memory.forget()
