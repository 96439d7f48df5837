import numpy as np
import pytest
import torch

from mpad.dropout import FIRST, GOLDEN, SECOND, Dropout, DropoutCounter, set_dropout_counter
from mpad.kernels import accelerate


def layer_of(seed, steps=0, p=0.5, layer=0):
    dropout = Dropout(p, layer).train()
    dropout.counter = DropoutCounter([seed])
    dropout.counter.steps += steps
    return dropout


@pytest.mark.parametrize("fast", [False, True])
def test_masks_are_splitmix64(fast):
    """Byte by byte, in NumPy's unsigned integers."""
    layer = accelerate(layer_of(7, steps=3, p=77 / 256, layer=1), fast)
    with np.errstate(over="ignore"):
        key = np.uint64(7) * np.uint64(GOLDEN) + np.uint64(3) * np.uint64(FIRST) + np.uint64(SECOND)
        key ^= key >> np.uint64(29)
        z = key + np.arange(3, dtype=np.uint64) * np.uint64(GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
        drawn = (z ^ (z >> np.uint64(31))).astype("<u8").view(np.uint8)[:21]
    expected = torch.from_numpy(np.where(drawn >= 77, np.float32(256 / 179), np.float32(0)))
    assert torch.allclose(layer(torch.ones(21)), expected)


def test_dropout_drops_its_share_and_keeps_the_mean():
    dropout, x = Dropout(0.3).train(), torch.ones(1000, 101)
    out = dropout(x)
    assert abs((out == 0).float().mean() - 0.3) < 0.01 and abs(out.mean() - 1) < 0.01
    assert dropout.eval()(x) is x and Dropout(0.0).train()(x) is x


def test_masks_change_by_step_layer_and_seed():
    x = torch.ones(300)
    first = layer_of(4)(x)
    assert torch.equal(layer_of(4)(x), first)
    for other in (layer_of(3), layer_of(4, steps=1), layer_of(4, layer=1)):
        assert not torch.equal(other(x), first)
    counter = DropoutCounter([3, 4])
    counter.advance(torch.tensor([0, 1]))
    assert counter.steps.tolist() == [0, 1]


def test_processes_that_share_a_batch_draw_its_masks_together():
    whole, part = layer_of(4), layer_of(4)
    part.counter.rows_before = 3
    x = torch.ones(7, 5)
    assert torch.equal(part(x[3:]), whole(x)[3:])


def test_rows_of_one_word_share_a_mask():
    words = torch.tensor([2, 5, 2, 0, 5])
    rows = layer_of(1)(torch.ones(5, 20), words)
    assert torch.equal(rows[0], rows[2]) and torch.equal(rows[1], rows[4]) and not torch.equal(rows[0], rows[1])
    assert torch.equal(layer_of(1)(torch.ones(1, 20), torch.tensor([5])), rows[1:2])  # in any company


def test_without_a_counter_every_call_has_masks_of_its_own():
    layer, x = Dropout(0.5).train(), torch.ones(400)
    assert not torch.equal(layer(x), layer(x))


def test_dropout_gradients():
    x = torch.randn(9, dtype=torch.float64, requires_grad=True)
    layer = Dropout(0.5).train()
    set_dropout_counter(layer, DropoutCounter([0]))  # stands still here
    assert torch.autograd.gradcheck(layer, x)
    single = torch.randn(500, requires_grad=True)
    out = Dropout(0.5).train()(single)
    (gradient,) = torch.autograd.grad(out.sum(), single)
    assert torch.allclose(gradient * single, out) and set(gradient.tolist()) == {0.0, 2.0}
