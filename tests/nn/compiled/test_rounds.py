"""Whole rounds and whole readouts compute what their passes do one by one (which are held to torch's elsewhere)."""

import copy

import pytest
import torch

from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.models import mpad
from mpad.models.config import MPADConfig
from mpad.models.mpad import MPAD, Level, read_groups
from mpad.nn import compiled, messages
from mpad.nn.compiled import readouts, rounds
from mpad.nn.messages import AuthorsMessagePassing, MessagePassing
from mpad.nn.neighbours import Clique, Path, WordNeighbours
from mpad.nn.rows import RepeatedRows

TEXTS = ["a b c a b d. e f", "", "x", "b a. c. d e f g. a b", "the end. is near", "c c c", "a b. b a. a b a c a"] * 20
FEW = TEXTS[:40]  # too few rows for weights to be merged: over several rounds other rounding may turn a ReLU

pytestmark = pytest.mark.skipif(not compiled.takes(torch.zeros(1)), reason="the compiled passes were not built")


def batch_of(texts=TEXTS, per="sentence"):
    graphs, _ = graphs_of_words(texts, per=per)
    return CorpusTensors(graphs).take(torch.arange(len(texts)))


GRAPHS = {
    "words": lambda batch: WordNeighbours(batch, master=True, renormalise=True),
    "words alone": lambda batch: WordNeighbours(batch, master=False, renormalise=False),
    "clique": lambda batch: Clique(batch, renormalise=True),
    "clique, summed": lambda batch: Clique(batch, renormalise=False),
    "path": Path,
}


def rows_of(kind, batch):
    return {"words": batch.n_words + batch.n_graphs, "words alone": batch.n_words}.get(kind, batch.n_graphs)


@pytest.fixture
def by_passes(monkeypatch):
    """What a function gives pass by pass. (Torch rounds otherwise: a ReLU may turn, and batch norm tells all rows.)"""

    def call(function):
        with monkeypatch.context() as patch:
            patch.setattr(messages, "in_c", lambda *given: None)
            patch.setattr(mpad, "read_whole", lambda *given: None)
            return function()

    return call


def agree(run, module, by_passes):
    """Results, gradients and running averages, whole and pass by pass, each from the same start."""
    other = copy.deepcopy(module)
    ours, theirs = run(module), by_passes(lambda: run(other))
    for mine, yours in zip(ours, theirs, strict=True):
        scale = yours.abs().max().clamp(min=1)
        assert torch.allclose(mine / scale, yours / scale, atol=2e-5)
    for (name, mine), yours in zip(module.named_parameters(), other.parameters(), strict=True):
        assert (mine.grad is None) == (yours.grad is None), name
        if mine.grad is not None:
            scale = yours.grad.abs().max().clamp(min=1)
            assert torch.allclose(mine.grad / scale, yours.grad / scale, atol=2e-5), name
    for (name, mine), yours in zip(module.named_buffers(), other.buffers(), strict=True):
        assert torch.allclose(mine, yours, atol=1e-5), name


def counted(monkeypatch, function):
    """How often a function of autograd was called."""
    calls = []
    apply = function.apply

    def seen(*given):
        calls.append(len(given))
        return apply(*given)

    monkeypatch.setattr(function, "apply", seen)
    return calls


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("step", [MessagePassing, AuthorsMessagePassing])
@pytest.mark.parametrize(("width", "threads"), [(16, 1), (48, 2), (64, 2), (128, 3)])
def test_a_round_and_its_gradients(kind, step, width, threads, by_passes, on_threads, monkeypatch):
    torch.manual_seed(width)
    batch = batch_of()
    module = step(width, width, gated=True, first=False)
    h = torch.randn(rows_of(kind, batch), 2 * width)
    g = torch.randn(h.shape[0], width)

    def run(network):
        own = h.clone().requires_grad_()
        y = network(own[:, width:], GRAPHS[kind](batch))
        y.backward(g)
        return y, own.grad

    calls = counted(monkeypatch, rounds.Round if step is MessagePassing else rounds.AuthorsRound)
    with on_threads(threads):
        agree(run, module, by_passes)
    assert len(calls) == 1


@pytest.mark.parametrize("step", [MessagePassing, AuthorsMessagePassing])
def test_the_first_round_takes_rows_that_repeat(step, by_passes, monkeypatch):
    torch.manual_seed(0)
    batch = batch_of()
    module = step(30, 32, gated=True, first=True)
    n = batch.n_words + batch.n_graphs
    distinct, index, g = torch.randn(11, 30), torch.randint(0, 12, (n,)), torch.randn(n, 32)

    def run(network):
        own = distinct.clone().requires_grad_()
        y = network(RepeatedRows(own, index), GRAPHS["words"](batch))
        y.backward(g)
        return y, own.grad

    calls = counted(monkeypatch, rounds.Round if step is MessagePassing else rounds.AuthorsRound)
    agree(run, module, by_passes)
    assert len(calls) == 1


@pytest.mark.parametrize("authors", [True, False])
@pytest.mark.parametrize("master", [True, False])
@pytest.mark.parametrize(("width", "steps"), [(16, 1), (48, 2), (64, 2), (16, 4)])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_level_and_its_gradients(authors, master, width, steps, threads, by_passes, on_threads, monkeypatch):
    torch.manual_seed(steps)
    batch = batch_of(FEW)
    config = MPADConfig(2, width, 50, "clique", hidden=width, authors=authors, steps=steps, master_node=master)
    module = Level(config, width, steps, master, first=False)
    kind = "words" if master else "words alone"
    h, g = torch.randn(rows_of(kind, batch), width), torch.randn(batch.n_graphs, width)

    def run(network):
        own = h.clone().requires_grad_()
        vectors, attention = network(own, GRAPHS[kind](batch), read_groups(batch)[0], batch.n_words, None)
        vectors.backward(g)
        assert not attention.requires_grad
        return vectors, attention, own.grad

    calls = counted(monkeypatch, readouts.Readouts)
    with on_threads(threads):
        agree(run, module, by_passes)
    assert len(calls) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"combine": "identity"},
        {"master_skip": False},
        {"steps": 4},  # too wide for the last dense layer
        {"hidden": 24},
        {"variant": "sentence-att"},
    ],
)
@pytest.mark.parametrize("authors", [True, False])
@pytest.mark.parametrize("n", [len(FEW), 1, 2])
def test_what_is_not_whole_runs_pass_by_pass(options, authors, n, by_passes):
    torch.manual_seed(0)
    batch = batch_of(TEXTS[:n])
    given = {"variant": "clique", "hidden": 64, "authors": authors, "dropout": 0.0, **options}
    network = MPAD(MPADConfig(3, 20, 40, **given))
    network.vectors.normal_()

    def run(model):
        logits = model(batch).logits
        (logits * torch.arange(logits.numel()).view(logits.shape)).sum().backward()
        return (logits,)

    agree(run, network, by_passes)


def test_attention_that_somebody_holds_is_not_written_again():
    torch.manual_seed(0)
    batch = batch_of()
    network = MPAD(MPADConfig(3, 20, 40, "path", hidden=16))
    held = network(batch).word_attention
    before = held.clone()
    network(batch)
    assert torch.equal(held, before)


@pytest.mark.parametrize("step", [MessagePassing, AuthorsMessagePassing])
def test_no_rows_at_all(step):
    batch = batch_of(["", " ", "."])
    module = step(20, 16, gated=True, first=True)
    nothing = RepeatedRows(torch.zeros(0, 20), torch.zeros(0, dtype=torch.int64))
    assert module(nothing, GRAPHS["words alone"](batch)).shape == (0, 16)


@pytest.mark.parametrize("kind", GRAPHS)
def test_rows_that_are_not_the_graphs_are_refused(kind):
    batch = batch_of(FEW)
    with pytest.raises(ValueError, match=str(rows_of(kind, batch))):
        MessagePassing(16, 16, gated=True, first=False)(torch.zeros(3, 16), GRAPHS[kind](batch))


def network_of(authors=True, **options):
    torch.manual_seed(0)
    network = MPAD(MPADConfig(3, 20, 40, "clique", **{"hidden": 16, "authors": authors, "dropout": 0.0, **options}))
    network.vectors.normal_()
    return network


def test_norms_that_are_frozen_stay_so():
    network, batch = network_of(), batch_of(FEW)
    expected = network.eval()(batch).logits
    for module in network.train().modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.eval()
    before = {name: value.clone() for name, value in network.named_buffers()}
    assert torch.allclose(network(batch).logits, expected, atol=1e-5)
    assert all(torch.equal(value, before[name]) for name, value in network.named_buffers())


@pytest.mark.parametrize("authors", [True, False])
@pytest.mark.parametrize("part", ["words.steps.1", "words.readouts", "words.norm", "words.dense", "sentences.steps.0"])
def test_parts_of_another_type_are_left_to_torch_which_refuses_them(part, authors):
    network = network_of(authors)
    network.get_submodule(part).double()
    with pytest.raises(RuntimeError):
        network(batch_of(FEW))


@pytest.mark.parametrize(
    "weight", ["words.steps.0.enter_norm.weight", "words.norm.weight", "words.steps.1.sent.weight"]
)
def test_a_weight_that_changed_before_the_gradient_was_taken_is_noticed(weight):
    network = network_of()
    loss = network(batch_of(FEW)).logits.sum()
    with torch.no_grad():
        network.get_parameter(weight).mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("authors", [True, False])
def test_gradients_of_gradients_are_refused(authors):
    network = network_of(authors)
    loss = network(batch_of(FEW)).logits.square().sum()
    weight = network.words.steps[1].sent.weight
    (gradient,) = torch.autograd.grad(loss, weight, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.square().sum().backward()


def test_scales_that_do_not_lie_end_to_end(by_passes):
    network, batch = network_of(), batch_of(FEW)
    expected = copy.deepcopy(network)(batch).logits
    norm = network.words.steps[0].enter_norm
    norm.weight = torch.nn.Parameter(torch.stack([norm.weight.detach(), torch.zeros(16)], dim=1)[:, 0])
    assert norm.weight.stride() == (2,)
    assert torch.allclose(network(batch).logits, expected, atol=1e-5)


@pytest.mark.parametrize("step", [MessagePassing, AuthorsMessagePassing])
def test_rows_of_another_width_are_refused(step):
    batch = batch_of(FEW)
    with pytest.raises(RuntimeError):
        step(64, 32, gated=True, first=False)(torch.zeros(batch.n_graphs, 32), Path(batch))
