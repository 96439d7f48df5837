import pytest
import torch

from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.nn.messages import AuthorsMessagePassing, MessagePassing
from mpad.nn.neighbours import WordNeighbours
from mpad.nn.rows import RepeatedRows


@pytest.fixture
def neighbours():
    graphs, _ = graphs_of_words(["a b c a", "d e"])
    batch = CorpusTensors(graphs).take(torch.arange(2))
    return WordNeighbours(batch, master=True, renormalise=True)  # 5 words, 2 masters


def test_one_step_is_equations_4_to_6(neighbours):
    torch.manual_seed(0)
    step, h = MessagePassing(4, 3, gated=True, first=True), torch.randn(7, 4)
    inbox = neighbours.heard(h)
    message = torch.relu(step.heard(torch.relu(step.sent(inbox))))
    assert torch.allclose(step(h, neighbours), step.combine(step.state(h), message), atol=1e-6)


def test_later_steps_have_no_projection(neighbours):
    assert MessagePassing(3, 3, gated=True, first=False).state is None
    assert MessagePassing(3, 3, gated=False, first=True).state is None


@pytest.mark.parametrize("kind", [MessagePassing, AuthorsMessagePassing])
@pytest.mark.parametrize("gated", [True, False])
def test_gradients(kind, gated, neighbours):
    torch.manual_seed(1)
    step = kind(3, 2, gated, first=True).double()
    h = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda h: step(h, neighbours), h, atol=1e-5)


@pytest.mark.parametrize("kind", [MessagePassing, AuthorsMessagePassing])
def test_repeated_rows_are_rows(kind, neighbours):
    torch.manual_seed(0)
    step, rows, index = kind(4, 3, True, True).eval(), torch.randn(4, 4), torch.tensor([0, 1, 2, 0, 3, 4, 4])
    plain = torch.cat([rows, torch.zeros(1, 4)])[index]
    assert torch.allclose(step(RepeatedRows(rows, index), neighbours), step(plain, neighbours), atol=1e-6)
