"""The arbiter: whole networks train for a few steps with and without kernels, and every prediction engine agrees."""

import copy
import random
from dataclasses import fields

import numpy as np
import pytest
import torch
from tests.kernels.cases import randomize

from mpad.config import PRESETS, VARIANTS, MPADConfig
from mpad.dropout import DropoutCounter, set_dropout_counter
from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.inference.network import Network
from mpad.kernels import accelerate, cpu
from mpad.model import MPAD

ABLATIONS = {
    "": {},
    "four rounds": {"steps": 4},
    "no master": {"master_node": False},
    "master among words": {"master_skip": False},
    "sums": {"renormalise": False},
    "neighbors only": {"combine": "identity"},
    "trained vectors": {"learn_vectors": True},
    "words read, wide documents": {"read_words": True, "read_width": 32},
}
DRAWN = random.Random(0)
TEXTS = ["", *(" ".join(DRAWN.choices("abcdefghijklmnop..", k=DRAWN.randint(1, 20))) for _ in range(48))]
STYLES = {"paper": PRESETS["paper"].network, "authors": PRESETS["authors"].network}


def network_and_corpus(variant, style, ablation):
    per = "document" if variant == "mpad" else "sentence"
    graphs, vocabulary = graphs_of_words(TEXTS, per=per)
    torch.manual_seed(0)
    config = MPADConfig(3, 12, vocabulary.n_rows, variant, hidden=16, **{**STYLES[style], **ABLATIONS[ablation]})
    network = randomize(MPAD(config))
    with torch.no_grad():
        network.vectors.copy_(torch.randn(network.vectors.shape))
    return network, graphs


def test_every_option_of_the_network_is_compared():
    """A new option needs a case here: kernels that do not know it would compute the network without it."""
    configs = [
        network_and_corpus(v, style, ablation)[0].config for v in VARIANTS for style in STYLES for ablation in ABLATIONS
    ]
    varied = {field.name for field in fields(MPADConfig) if len({getattr(one, field.name) for one in configs}) > 1}
    assert varied | {"n_classes", "vector_width", "n_words", "hidden", "dropout", "members"} == {
        field.name for field in fields(MPADConfig)
    }


def train(network, corpus, n_steps=2):
    """Return losses, the first step's gradients, and weights and running averages at the end."""
    counter = DropoutCounter([5])
    set_dropout_counter(network, counter)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02)
    targets, losses, gradients = torch.arange(len(corpus)) % 3, [], {}
    network.train()
    for step in range(n_steps):
        documents = torch.arange(len(corpus))[step % 2 :: 2]
        counter.advance(torch.ones(1, dtype=torch.int64))
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(corpus.take(documents)).logits, targets[documents])
        loss.backward()
        if not step:
            gradients = {name: x.grad.clone() for name, x in network.named_parameters() if x.grad is not None}
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses, gradients, network.state_dict()


@pytest.mark.skipif(cpu.library() is None, reason="the compiled kernels were not built")
@pytest.mark.parametrize("ablation", ABLATIONS)
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_training_in_c_is_plain_training(variant, style, ablation):
    """Dropout and batch norm are on."""
    plain, graphs = network_and_corpus(variant, style, ablation)
    corpus, fast = CorpusTensors(graphs), accelerate(copy.deepcopy(plain), True)
    losses, gradients, weights = train(accelerate(plain, False), corpus)
    fast_losses, fast_gradients, fast_weights = train(fast, corpus)
    assert fast_losses == pytest.approx(losses, abs=2e-4)
    largest = max(float(x.abs().max()) for x in gradients.values())
    for name, x in gradients.items():
        ours = fast_gradients.get(name, torch.zeros_like(x))
        assert torch.allclose(ours, x, atol=1e-4 * largest), name
    for name, x in weights.items():
        assert torch.allclose(fast_weights[name].float(), x.float(), atol=3e-3), name


@pytest.mark.parametrize("native", ["c", "numpy"])
@pytest.mark.parametrize("ablation", ABLATIONS)
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_prediction_without_torch_is_the_plain_network(variant, style, ablation, native, monkeypatch):
    if native == "numpy":
        monkeypatch.setattr("mpad.native.library", None)
    network, graphs = network_and_corpus(variant, style, ablation)
    network.eval()
    weights = {name: x.detach().numpy() for name, x in network.state_dict().items()}
    with torch.no_grad():
        expected = network(CorpusTensors(graphs).take(torch.arange(len(TEXTS))))
    answer = Network(network.config, weights, network.vectors.detach().numpy()).answer(graphs)
    assert np.allclose(answer.logits, expected.logits.numpy(), atol=1e-5)
    assert np.allclose(answer.vectors, expected.vectors.numpy(), atol=1e-5)
