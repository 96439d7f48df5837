"""What has few rows: the compiled form is the torch form."""

import pytest
import torch

from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.nn import compiled
from mpad.nn.neighbours import Clique, Path
from mpad.nn.norm import BatchNorm
from mpad.training.loss import weighted_loss

pytestmark = pytest.mark.skipif(not compiled.takes(torch.zeros(1)), reason="the compiled passes were not built")
TEXTS = ["a b. c. d e", "x", "", "a. b", "a. b. c. d. e. f"]


@pytest.mark.parametrize("renormalise", [True, False])
@pytest.mark.parametrize("path", [True, False])
@pytest.mark.parametrize("width", [12, 600])
def test_sentences_hear_each_other(path, renormalise, width, by_torch):
    batch = CorpusTensors(graphs_of_words(TEXTS, per="sentence")[0]).take(torch.arange(len(TEXTS)))
    torch.manual_seed(0)
    x, bias = torch.randn(batch.n_graphs, width + 18)[:, 5 : 5 + width], torch.randn(width)

    def run():
        graph = Path(batch) if path else Clique(batch, renormalise)
        return graph.heard(x), graph.heard_relu(x, bias), graph.transposed(x)

    for ours, theirs in zip(run(), by_torch(run), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("classes", [1, 2, 9])
def test_the_loss_and_its_gradient(classes, by_torch):
    torch.manual_seed(0)
    logits = (torch.randn(40, classes) * 30).requires_grad_()
    targets, weights = torch.randint(classes, (40,)), torch.rand(40)

    def run():
        loss = weighted_loss(logits, targets, weights)
        return loss, *torch.autograd.grad(3 * loss, logits)

    for ours, theirs in zip(run(), by_torch(run), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-7)
    assert weighted_loss(logits, targets, torch.zeros(40)) == 0
    with pytest.raises(IndexError, match="classes"):
        weighted_loss(logits, targets + classes, weights)


@pytest.mark.parametrize(("rows", "width"), [(2, 16), (300, 64), (40, 512), (1_000, 48)])
@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_batch_norm(rows, width, relu, before, by_torch):
    torch.manual_seed(rows)
    x, g = torch.randn(rows, 2 * width)[:, width:] * 3 + 100, torch.randn(rows, width)
    x.requires_grad_()
    bias = torch.randn(width) if before else None

    def run():
        torch.manual_seed(1)
        norm = BatchNorm(width)
        with torch.no_grad():
            norm.weight.normal_(), norm.bias.normal_()
        y = norm(x, relu=relu, before=bias)
        gradients = torch.autograd.grad(y, [x, norm.weight, norm.bias], g)
        return [y, *gradients, norm.running_mean, norm.running_var]

    for ours, theirs in zip(run(), by_torch(run), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-3, atol=2e-3)
