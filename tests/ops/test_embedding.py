import numpy as np
import pytest
import torch

from mpad import ops
from mpad.nn.dropout import Dropout, DropoutCounter, set_dropout_counter
from mpad.ops import DropoutState, Words
from mpad.ops.embedding import FIRST, GOLDEN, NO_DROPOUT, SECOND


def state_of(*seeds, steps=0, threshold=128, layer=0):
    n = len(seeds)
    return DropoutState(torch.tensor(seeds), torch.full((n,), steps), torch.full((n,), threshold), layer)


def test_masks_are_splitmix64():
    """Byte by byte, in NumPy's unsigned integers."""
    state = state_of(7, steps=3, threshold=77, layer=1)
    x = torch.ones(21)
    with np.errstate(over="ignore"):
        key = np.uint64(7) * np.uint64(GOLDEN) + np.uint64(3) * np.uint64(FIRST) + np.uint64(SECOND)
        key ^= key >> np.uint64(29)
        z = key + np.arange(3, dtype=np.uint64) * np.uint64(GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
        drawn = (z ^ (z >> np.uint64(31))).astype("<u8").view(np.uint8)[:21]
    expected = torch.from_numpy(np.where(drawn >= 77, np.float32(256 / 179), np.float32(0)))
    for implementation in ("reference", "fast"):
        with ops.use(implementation):
            assert torch.allclose(ops.dropout(x, state), expected)


def test_dropout_drops_its_share_and_keeps_the_mean():
    dropout, x = Dropout(0.3).train(), torch.ones(1000, 101)
    out = dropout(x)
    assert abs((out == 0).float().mean() - 0.3) < 0.01 and abs(out.mean() - 1) < 0.01
    assert dropout.eval()(x) is x and Dropout(0.0).train()(x) is x


def test_masks_change_by_step_layer_and_seed_and_not_with_company():
    x = torch.ones(2, 300)
    both = ops.dropout(x, state_of(3, 4))
    assert not torch.equal(both[0], both[1])
    assert torch.equal(ops.dropout(x[1:], state_of(4)), both[1:])
    assert not torch.equal(ops.dropout(x[1:], state_of(4, steps=1)), both[1:])
    assert not torch.equal(ops.dropout(x[1:], state_of(4, layer=1)), both[1:])
    counter = DropoutCounter([3, 4])
    counter.advance(torch.tensor([0, 1]))
    assert counter.steps.tolist() == [0, 1]


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


@pytest.mark.parametrize("implementation", ["reference", "fast"])
def test_nodes_of_a_word_share_one_mask(implementation):
    table, weight = torch.rand(6, 20) + 1, torch.eye(20)[:16]
    words = Words(torch.tensor([2, 5, 2, 0, 5]), None, 2)
    with ops.use(implementation):
        (rows,) = ops.embedding_linear(table, words, [weight], state_of(1))
        (alone,) = ops.embedding_linear(table, Words(torch.tensor([5]), None, 0), [weight], state_of(1))
        (whole,) = ops.embedding_linear(table, words, [weight], NO_DROPOUT)
    assert torch.equal(rows[0], rows[2]) and torch.equal(rows[1], rows[4]) and torch.equal(rows[1:2], alone)
    assert (rows[:5] == 0).any() and torch.equal(rows[5:], torch.zeros(2, 16))
    assert torch.allclose(whole[:5], table[words.words][:, :16])
    kept = rows[:5] != 0
    assert torch.allclose(rows[:5][kept], 2 * table[words.words][:, :16][kept])


def test_words_that_a_table_does_not_have_are_refused():
    for words in ([0, 6], [-2, 1]):
        with pytest.raises(IndexError):
            ops.embedding_linear(
                torch.rand(6, 20), Words(torch.tensor(words), None, 0), [torch.rand(16, 20)], NO_DROPOUT
            )
