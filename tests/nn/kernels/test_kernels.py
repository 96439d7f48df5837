"""The GPU's kernels and the torch code compute the same; without a GPU, Triton's interpreter runs the kernels."""

import pytest
import torch

from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors, stack_batches
from mpad.graph.planned import PlannedCorpus, PlanSize
from mpad.models.config import VARIANTS, MPADConfig
from mpad.models.mpad import MPAD
from mpad.nn import kernels
from mpad.nn.dropout import Dropout
from mpad.training.stack import stack_models

pytest.importorskip("triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TEXTS = ["a b c a b d. e f", "", "x", "b a. c. d e f g. a b", "the end. is near", "c c c", "a b. b a. a b a c a"]
DOCUMENTS = torch.tensor([[[0, 2, 3, 5], [6, 1, 4, -1]]])  # (steps, models, slots)


@pytest.fixture(autouse=True)
def kernels_everywhere(monkeypatch):
    switch = {"on": False}
    monkeypatch.setattr(kernels, "run_on", lambda x: switch["on"])
    return switch


def networks(variant, options):
    per = "document" if variant == "mpad" else "sentence"
    graphs, vocabulary = graphs_of_words(TEXTS, per=per)
    models = []
    for seed in range(2):
        torch.manual_seed(seed)
        models.append(MPAD(MPADConfig(3, 5, vocabulary.n_rows, variant, **{"hidden": 6, "dropout": 0.0, **options})))
    with torch.no_grad():
        rows = torch.randn(vocabulary.n_rows, 5)
        for model in models:
            model.vectors.copy_(rows)
    return stack_models([model.to(DEVICE) for model in models]), CorpusTensors(graphs, DEVICE)


def planned(corpus, documents=DOCUMENTS, nodes=24, graphs=14):
    plan = PlannedCorpus(corpus)
    size = PlanSize(nodes, graphs if corpus.n_graphs.max() > 1 else 5, 5)
    steps = plan.plan(documents.to(DEVICE), size)
    return plan.batch(steps[0], 2, size)


def stacked(corpus, documents=DOCUMENTS):
    return stack_batches([corpus.take(row[row >= 0].to(DEVICE)) for row in documents[0]])


def trained(network):
    return [parameter for parameter in network.parameters() if parameter.requires_grad]


def losses(network, batch):
    logits = network(batch).logits
    weight = torch.arange(1.0, 4.0, device=DEVICE)
    real = batch.slabs.documents
    return logits[:, :4] * real[:, :4], (logits.tanh() * weight * real).sum()


def all_options():
    for variant in VARIANTS:
        for authors in (False, True):
            yield variant, {"authors": authors}
    for authors in (False, True):
        yield "mpad", {"authors": authors, "master_node": False}
        yield "mpad", {"authors": authors, "combine": "identity", "steps": 3}
        yield "clique", {"authors": authors, "master_skip": False, "renormalise": False}
        yield "mpad", {"authors": authors, "learn_vectors": True, "hidden": 16}


@pytest.mark.parametrize(("variant", "options"), list(all_options()))
def test_answers_and_gradients(variant, options, kernels_everywhere):
    network, corpus = networks(variant, options)
    plain = losses(network, stacked(corpus))
    gradients = torch.autograd.grad(plain[1], trained(network), materialize_grads=True)
    averages = [buffer.clone() for name, buffer in network.named_buffers() if "running" in name]
    again, _ = networks(variant, options)
    kernels_everywhere["on"] = True
    batch = planned(corpus)
    fast = losses(again, batch)
    assert torch.allclose(fast[0], plain[0], atol=1e-4)
    by_kernels = torch.autograd.grad(fast[1], trained(again), materialize_grads=True)
    for (name, _), one, other in zip(again.named_parameters(), by_kernels, gradients, strict=False):
        assert torch.allclose(one, other, atol=1e-3 * max(1.0, float(other.abs().max())), rtol=1e-3), name
    for one, other in zip([b for name, b in again.named_buffers() if "running" in name], averages, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_a_plan_holds_its_documents_and_a_dummy():
    graphs, vocabulary = graphs_of_words(TEXTS)
    batch = planned(CorpusTensors(graphs, DEVICE))
    words = graphs.words[batch.node[0].cpu().clamp(min=0)]
    held = [
        vocabulary.words[word] for word, node in zip(words.tolist(), batch.node[0].tolist(), strict=True) if node >= 0
    ]
    expected = [word for text in (0, 2, 3, 5) for word in sorted(set(TEXTS[text].replace(".", "").split()))]
    assert sorted(held) == sorted(expected)
    assert batch.size_in_slab[0].tolist() == [6, 1, 7, 1, 9] and batch.base[0].tolist() == [0, 6, 7, 14, 15]
    assert batch.slabs.documents.flatten().tolist() == [1, 1, 1, 1, 0, 1, 1, 1, 0, 0]
    assert batch.document[1].tolist() == [6, 1, 4, -1, -1]


def test_masks_drop_their_share_and_do_not_hang_on_the_stack(kernels_everywhere):
    from mpad.nn.kernels.noise import DeviceNoise

    kernels_everywhere["on"] = True
    layer = Dropout(0.5, place=1).train()
    x = torch.ones(2, 40, 50, device=DEVICE)
    seeds, rates = torch.tensor([3, 4], device=DEVICE), torch.tensor([0.5, 0.25], device=DEVICE)
    layer.rates, layer.noise = (0.5, 0.25), DeviceNoise(seeds, rates)
    both = layer(x)
    assert abs((both[0] == 0).float().mean() - 0.5) < 0.05 and abs((both[1] == 0).float().mean() - 0.25) < 0.05
    assert both[0].max() == 2 and abs(both[1].mean() - 1) < 0.05
    layer.rates, layer.noise = (0.25,), DeviceNoise(seeds[1:], rates[1:])
    assert torch.equal(layer(x[1:, :30]), both[1:, :30])
    layer.noise.advance(torch.ones(1, dtype=torch.int64, device=DEVICE))
    assert not torch.equal(layer(x[1:]), both[1:])


def test_adam_is_torchs_and_leaves_resting_models_alone():
    from mpad.nn.kernels.adam import adam_step

    torch.manual_seed(0)
    x = torch.randn(3, 50, device=DEVICE)
    theirs = [torch.nn.Parameter(row.clone()) for row in x]
    optimisers = [torch.optim.Adam([row], lr=rate) for row, rate in zip(theirs, (0.1, 0.2, 0.3), strict=True)]
    m, v, steps = torch.zeros_like(x), torch.zeros_like(x), torch.zeros(3, dtype=torch.int64, device=DEVICE)
    rates = torch.tensor([0.1, 0.2, 0.3], device=DEVICE)
    for number in range(4):
        g, active = torch.randn_like(x), torch.tensor([1, 1, number % 2], device=DEVICE)
        steps += active
        adam_step(x, g, m, v, rates, steps, active)
        for row, optimiser, own, takes in zip(theirs, optimisers, g, active, strict=True):
            if takes:
                row.grad = own
                optimiser.step()
    assert torch.allclose(x, torch.stack([row.detach() for row in theirs]), atol=1e-5)


@pytest.mark.parametrize("looks_back", [True, False])
def test_directional_attention(kernels_everywhere, looks_back):
    from mpad.models.disan import DirectionalAttention

    torch.manual_seed(0)
    layer = DirectionalAttention(3, 70, looks_back).to(DEVICE)  # more features than a program has
    length = torch.tensor([5, 1, 3], device=DEVICE)
    real = torch.arange(5, device=DEVICE) < length[:, None]
    found = []
    for on in (False, True):
        kernels_everywhere["on"] = on
        x = torch.linspace(-2, 2, 3 * 5 * 3, device=DEVICE).view(3, 5, 3).requires_grad_()
        layer.zero_grad()
        u = layer(x, real) * real[..., None]
        u.square().sum().backward()
        found.append([u.detach(), x.grad, *[parameter.grad.clone() for parameter in layer.parameters()]])
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize("precision", ["highest", "high"])
@pytest.mark.parametrize(("n_out", "n_in"), [(6, 5), (64, 64), (128, 300), (130, 129)])
def test_gradients_of_weights(precision, n_out, n_in):
    if precision == "high" and DEVICE == "cpu":
        pytest.skip("the interpreter has no bfloat16")
    from mpad.nn.kernels.products import weight_gradient

    torch.manual_seed(0)
    g, x = torch.randn(2, 70, n_out, device=DEVICE), torch.randn(2, 70, n_in, device=DEVICE)
    allowed = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision(precision)
        d_w, d_b = weight_gradient(g, x, bias=True)
    finally:
        torch.set_float32_matmul_precision(allowed)
    exact = (g.double().mT @ x.double()).float()
    assert torch.allclose(d_w, exact, atol=1e-4 if precision == "highest" else 0.3)  # bfloat16 has eight bits
    assert torch.allclose(d_b, g.sum(1), atol=1e-4)
