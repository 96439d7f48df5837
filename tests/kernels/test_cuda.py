"""Triton kernels held to the plain model: on a GPU where there is one, in Triton's interpreter elsewhere."""

import warnings

import pytest
import torch
from tests.kernels.cases import STYLES, randn, randomize, static_batch
from torch import nn
from torch.nn import functional as F

from mpad.config import VARIANTS, MPADConfig
from mpad.dropout import Dropout, DropoutCounter, set_dropout_counter
from mpad.kernels import accelerate
from mpad.model import MPAD, BatchNorm, Gate, WordGraph, segment_softmax
from mpad.training.adam import BETA1, BETA2, EPSILON
from mpad.training.engine import stack_models

pytest.importorskip("triton")
HAS_GPU = torch.cuda.is_available()
DEVICE = "cuda" if HAS_GPU else "cpu"


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Make cuBLAS's handle, of which torch warns when autograd's thread is the first to want one."""
    if HAS_GPU:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.ones(1, 1, device="cuda").requires_grad_().mm(torch.ones(1, 1, device="cuda")).backward()


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


def same(one, other, tolerance=1e-4):
    scale = other.abs().max().clamp(min=1) if other.numel() else 1
    return torch.allclose(one / scale, other / scale, atol=tolerance)


def check(fast, plain, wanted, tolerance=1e-4):
    """Compare results, which may be tuples, and gradients."""
    fast, plain = ([x] if isinstance(x, torch.Tensor) else list(x) for x in (fast, plain))
    gradients = []
    for outputs in (fast, plain):
        torch.manual_seed(7)
        outputs = [x for x in outputs if x.requires_grad]
        seeds = [torch.randn(x.shape).to(x.device) for x in outputs]
        gradients.append(torch.autograd.grad(outputs, wanted, seeds, allow_unused=True))
    for ours, theirs in zip([*fast, *gradients[0]], [*plain, *gradients[1]], strict=True):
        assert (ours is None) == (theirs is None)
        assert ours is None or same(ours, theirs, tolerance)


# ── Whole networks ──

ABLATIONS = {
    "": {},
    "no master": {"master_node": False},
    "master among words": {"master_skip": False},
    "sums": {"renormalise": False},
    "neighbors only": {"combine": "identity"},
    "one round": {"steps": 1},
    "trained vectors": {"learn_vectors": True},
    "words read, wide documents": {"read_words": True, "read_width": 32},
}


def stacked_and_alone(variant, options, dropout):
    """Return two networks with their batches, and the stacked network with a static batch of the same documents."""
    batch, own = static_batch("document" if variant == "mpad" else "sentence", DEVICE)
    config = MPADConfig(3, 5, int(batch.corpus.words.max()) + 1, variant, hidden=6, dropout=dropout, **options)
    networks = []
    for seed in (3, 4):
        network = randomize(MPAD(config)).to(DEVICE)
        with torch.no_grad():
            network.vectors.copy_(torch.randn(network.vectors.shape))
        if networks and not config.learn_vectors:
            network.set_vectors(networks[0].vectors)
        set_dropout_counter(network, DropoutCounter([seed], DEVICE))
        networks.append(network)
    stacked = accelerate(stack_models(networks), True)
    set_dropout_counter(stacked, DropoutCounter([3, 4], DEVICE))
    return networks, own, stacked, batch


def settings():
    """Return every variant × preset × ablation on a GPU; the interpreter takes seconds for each, and tries fewer."""
    every = [(v, s, a) for v in VARIANTS for s in STYLES for a in ABLATIONS]
    return every if HAS_GPU else [one for one in every if not one[2] or (one[0] == "mpad" and one[1] == "paper")]


@pytest.mark.parametrize(("variant", "style", "ablation"), settings())
def test_stacked_networks_are_the_plain_ones(variant, style, ablation):
    """Logits, gradients and running averages while training, with dropout; logits of prediction."""
    networks, own, stacked, batch = stacked_and_alone(variant, {**STYLES[style], **ABLATIONS[ablation]}, 0.5)
    seeds = [torch.randn(part.n_documents, 3, device=DEVICE) for part in own]
    logits = stacked.train()(batch).logits
    parts = [logits[model, : len(seed)] for model, seed in enumerate(seeds)]
    sum((part * seed).sum() for part, seed in zip(parts, seeds, strict=True)).backward()
    for model, (network, plain, seed) in enumerate(zip(networks, own, seeds, strict=True)):
        expected = network.train()(plain).logits
        assert same(parts[model], expected, 1e-2 if HAS_GPU else 1e-3)
        (expected * seed).sum().backward()
        fast = dict(stacked.named_parameters())
        largest = max(x.grad.abs().max() for x in network.parameters() if x.grad is not None)
        for name, parameter in network.named_parameters():
            gradient, theirs = fast[name].grad, parameter.grad
            if theirs is None:
                continue
            gradient = torch.zeros_like(theirs) if gradient is None else gradient[model]
            assert same(gradient / largest, theirs / largest, 2e-2 if HAS_GPU else 5e-3), name
        for name, value in network.named_buffers():
            if "running" in name:
                assert same(dict(stacked.named_buffers())[name][model], value), name
    with torch.no_grad():
        logits = stacked.eval()(batch).logits
        for model, (network, plain) in enumerate(zip(networks, own, strict=True)):
            assert same(logits[model, : plain.n_documents], network.eval()(plain).logits)


# ── Kernels one by one ──


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("master", [True, False])
def test_aggregate(master, mean):
    from mpad.kernels.cuda.aggregate import aggregate, word_graph

    batch, own = static_batch("sentence", DEVICE)
    n, graphs = batch.node.shape[1], batch.base.shape[1]
    x = randn(2, n + graphs * master, 6, scale=1, device=DEVICE)
    received = aggregate(x, word_graph(batch, master, mean))
    ours, theirs = [], []
    for model, part in enumerate(own):
        rows = [slice(0, part.n_words)] + ([slice(n, n + part.n_graphs)] if master else [])
        ours.append(torch.cat([received[model, row] for row in rows]))
        theirs.append(WordGraph(part, master, mean).aggregate(torch.cat([x[model, row] for row in rows])))
    check(ours, theirs, [x])


@pytest.mark.parametrize("width", [6, 72])
@pytest.mark.parametrize(("relu", "mapped"), [(True, True), (False, True), (False, False)])  # ReLU belongs to the map
def test_gated_update(relu, mapped, width):
    from mpad.kernels.cuda.gate import UpdateWeights, gated_update

    gates, maps = ([make() for _ in range(2)] for make in (lambda: Gate(width), lambda: nn.Linear(width, width)))
    for module in (*gates, *maps):
        module.to(DEVICE)
    h, x = randn(2, 9, width, device=DEVICE), randn(2, 9, width, device=DEVICE)

    def stacked(find):
        return torch.stack([find(model) for model in range(2)])

    last = (stacked(lambda k: maps[k].weight), stacked(lambda k: maps[k].bias)) if mapped else (None, None)
    update = UpdateWeights(
        *last,
        stacked(lambda k: gates[k].from_message.bias),
        stacked(lambda k: gates[k].from_message.weight),
        stacked(lambda k: gates[k].from_state.weight),
        stacked(lambda k: gates[k].from_reset.weight),
    )

    def plain(k):
        m = maps[k](x[k]) if mapped else x[k]
        return gates[k](h[k], F.relu(m) if relu else m)

    wanted = [h, x, *[p for module in (*gates, *(maps if mapped else [])) for p in module.parameters()]]
    check(gated_update(h, x, update, relu), stacked(plain), wanted)


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("width", [6, 72])
def test_attention(width, bounded):
    from mpad.kernels.cuda.attention import attention

    batch, _ = static_batch("sentence", DEVICE)
    models, n = batch.node.shape
    h, align = randn(2, n, width, scale=1, device=DEVICE), randn(2, width, width, device=DEVICE)
    bias = randn(2, width, device=DEVICE) if bounded else None
    context, groups = randn(2, 1, width, device=DEVICE), batch.base.shape[1]

    def plain(k):
        mapped = F.linear(h[k], align[k], None if bias is None else bias[k])
        score = F.linear(torch.tanh(mapped), context[k])[:, 0]
        owner = batch.owner_in_model[k].long()
        alpha = segment_softmax(torch.tanh(score) if bounded else score, owner, groups)
        return h.new_zeros(groups, width).index_add(0, owner, alpha[:, None] * h[k]), alpha.detach()

    u, alpha = attention(h, batch.base, batch.size_in_model, align, bias, context, bounded)
    parts = [plain(k) for k in range(models)]
    real = (batch.node >= 0).any(1)
    assert real.all()
    wanted = [x for x in (h, align, bias, context) if x is not None]
    graphs = [int((batch.document_of_graph[k] < batch.document.shape[1] - 1).sum()) for k in range(models)]
    ours = [u[k, : graphs[k]] for k in range(models)]
    check(ours, [parts[k][0][: graphs[k]] for k in range(models)], wanted)
    for k in range(models):
        words = batch.node[k] >= 0
        assert same(alpha.view(models, -1)[k][words], parts[k][1][words])


@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_batch_norm(before, relu):
    """Each model by its own rows; padding counts nowhere, and a model with one row uses its running averages."""
    from mpad.kernels.cuda.batch_norm import batch_norm

    counts = (6, 4, 1)
    mask = torch.tensor([[float(row < n) for row in range(6)] for n in counts], device=DEVICE)[..., None]
    alone = [randomize(BatchNorm(6)).to(DEVICE).train() for _ in counts]
    stacked = BatchNorm(6).train()
    stacked.weight, stacked.bias = (
        nn.Parameter(torch.stack([getattr(norm, name).detach() for norm in alone])) for name in ("weight", "bias")
    )
    stacked.running_mean, stacked.running_var = (
        torch.stack([getattr(norm, name) for norm in alone]) for name in ("running_mean", "running_var")
    )
    x = randn(3, 6, 6, scale=1, device=DEVICE)
    bias = torch.randn(3, 6, device=DEVICE) if before else None
    y = batch_norm(x, bias, stacked, mask, relu)
    ours, theirs = [], []
    for model, (norm, n) in enumerate(zip(alone, counts, strict=True)):
        shifted = x[model, :n] if bias is None else x[model, :n] + bias[model]
        expected = norm(shifted)
        ours.append(y[model, :n])
        theirs.append(F.relu(expected) if relu else expected)
        assert same(stacked.running_mean[model], norm.running_mean)
        assert same(stacked.running_var[model], norm.running_var)
    check(ours, theirs, [x])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("n_in", "n_out"), [(5, 6), (64, 64), (300, 128), (129, 130)])
def test_linear(n_in, n_out, bias):
    from mpad.kernels.cuda.linear import linear

    x, w = randn(2, 70, n_in, device=DEVICE), randn(2, n_out, n_in, device=DEVICE)
    b = randn(2, n_out, device=DEVICE) if bias else None
    plain = x @ w.mT if b is None else x @ w.mT + b[:, None]
    check(linear(x, w, b), plain, [part for part in (x, w, b) if part is not None])


def stacked_dropout(p):
    """Return dropout of two models as one layer, and the layer of each."""
    layers = []
    for seeds in ([3, 4], [3], [4]):
        layer = Dropout(p, layer=1).to(DEVICE).train()
        layer.counter, layer.threshold = DropoutCounter(seeds, DEVICE), layer.threshold.repeat(len(seeds))
        layers.append(layer)
    return layers


@pytest.mark.parametrize("dropped", [True, False])
@pytest.mark.parametrize("tables", [(), (2,)], ids=["one table", "own tables"])
def test_word_rows(tables, dropped):
    from mpad.kernels.cuda.embedding import DropoutState, WordRows

    batch, _ = static_batch("document", DEVICE)
    table = randn(*tables, int(batch.corpus.words.max()) + 1, 5, device=DEVICE)
    weights = [randn(2, 6, 5, device=DEVICE) for _ in range(2)]
    layers = stacked_dropout(0.5 if dropped else 0.0)
    rows = WordRows(table, batch.corpus.words, batch.node, 5, DropoutState.of(layers[0])).linear(*weights)

    def plain(weight, model):
        words = batch.corpus.words[batch.node[model].clamp(min=0)].long()
        h = layers[1 + model](F.embedding(words, table[model] if tables else table), words)
        return F.pad((h * (batch.node[model] >= 0)[:, None]) @ weight[model].T, (0, 0, 0, 5))

    theirs = [torch.stack([plain(weight, model) for model in range(2)]) for weight in weights]
    check(rows, theirs, [table, *weights])


def test_dropout():
    from mpad.kernels.cuda.embedding import dropout

    stacked, *alone = stacked_dropout(0.3)
    x = randn(2, 7, 5, device=DEVICE)
    check(dropout(x, stacked), torch.stack([layer(x[model]) for model, layer in enumerate(alone)]), [x])


def test_adam_is_torchs():
    from mpad.kernels.cuda.adam import adam_step

    x, g = torch.rand(2, 40, device=DEVICE), torch.rand(2, 40, device=DEVICE)
    expected = x.clone()
    theirs = torch.optim.Adam([row := nn.Parameter(expected[0].clone())], 0.1, (BETA1, BETA2), EPSILON)
    m, v, steps = torch.zeros_like(x), torch.zeros_like(x), torch.zeros(2, dtype=torch.int64, device=DEVICE)
    for _ in range(3):
        steps += torch.tensor([1, 0], device=DEVICE)
        adam_step([x], [g], [m], [v], torch.full((2,), 0.1, device=DEVICE), steps, torch.tensor([1, 0], device=DEVICE))
        row.grad = g[0].clone()
        theirs.step()
    assert same(x[0], row.detach()) and torch.equal(x[1], expected[1])


@pytest.mark.parametrize("looks_back", [True, False])
def test_directional_attention(looks_back):
    from mpad.paper.networks import directional_triton, disan

    real = torch.arange(5, device=DEVICE) < torch.tensor([5, 1, 3], device=DEVICE)[:, None]
    parts = [randn(3, 5, 70, device=DEVICE) for _ in range(3)]
    fast = directional_triton.directional_attention(*parts, real, looks_back, 5.0)
    check(fast, disan.directional_attention(*parts, real, looks_back, 5.0), parts, 2e-4)


@pytest.mark.skipif(not HAS_GPU, reason="the interpreter has no bfloat16")
def test_weight_gradients_of_lower_precision():
    from mpad.kernels.cuda.linear import weight_gradient

    g, x = torch.randn(2, 70, 64, device="cuda"), torch.randn(2, 70, 128, device="cuda")
    allowed = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        d_w, d_b = weight_gradient(g, x, bias=True)
    finally:
        torch.set_float32_matmul_precision(allowed)
    assert torch.allclose(d_w, (g.double().mT @ x.double()).float(), atol=0.3)  # bfloat16 has eight bits
    assert torch.allclose(d_b, g.sum(1), atol=1e-4)
