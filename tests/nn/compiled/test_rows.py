"""Passes over rows and numbers compute what the code beside them does."""

import pytest
import torch

from mpad.nn import compiled
from mpad.nn.compiled.linear import worthwhile
from mpad.nn.compiled.rows import distinct
from mpad.nn.dropout import Dropout, Noise
from mpad.nn.linear import Linear
from mpad.nn.rows import RepeatedRows, project, project_both

pytestmark = pytest.mark.skipif(not compiled.takes(torch.zeros(1)), reason="the compiled passes were not built")


def test_distinct_words_stand_where_they_first_come():
    words = torch.tensor([5, 2, 5, 9, 2, 0])
    for _ in range(2):  # what the first call wrote is gone
        found, index = distinct(words, masters=2, n_words=10)
        assert found.tolist() == [5, 2, 9, 0]
        assert index.tolist() == [0, 1, 0, 2, 1, 3, 4, 4]
    assert [part.tolist() for part in distinct(words[:0], 1, 10)] == [[], [0]]
    for wrong in (torch.tensor([3, 10]), torch.tensor([-1])):
        with pytest.raises(IndexError, match="0 to 9"):
            distinct(wrong, 0, 10)


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.999])
@pytest.mark.parametrize("width", [1, 7, 8, 300, 1030])
def test_dropped_rows_of_a_table(rate, width, by_torch):
    torch.manual_seed(0)
    layer, table, words = Dropout(rate, place=3), torch.randn(50, width, requires_grad=True), torch.tensor([7, 49, 0])
    layer.noise = Noise([11])

    def run():
        rows = layer.rows(table, words)
        return rows, *torch.autograd.grad((rows**2).sum(), table)

    ours = run()
    for one, other in zip(ours, by_torch(run), strict=True):
        assert torch.allclose(one, other)
    assert torch.equal(layer.rows(table, words[1:2]), ours[0][1:2])


@pytest.mark.parametrize("shape", [(1,), (3, 5), (128, 64), (2, 129, 150), (0, 4)])
def test_dropped_numbers_and_their_gradients(shape, by_torch):
    layer, x = Dropout(0.3), torch.randn(shape, requires_grad=True)

    def run():
        y = layer(x)
        return y, *torch.autograd.grad((y**2).sum(), x)

    for ours, theirs in zip(run(), by_torch(run), strict=True):
        assert torch.allclose(ours, theirs)


@pytest.mark.parametrize("width", [16, 48, 64])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_projections_of_rows_that_repeat(width, threads, by_torch, on_threads):
    torch.manual_seed(width)
    rows = RepeatedRows(torch.randn(9, 30, requires_grad=True), torch.randint(10, (70,)))
    first, second = (torch.randn(width, 30, requires_grad=True) for _ in range(2))

    def run():
        a, b = project_both(rows, first, second)
        c = project(rows, first)
        loss = (a**2).sum() + (b**3).sum() + (c * a).sum()
        return a, b, c, *torch.autograd.grad(loss, [first, second, rows.distinct])

    with on_threads(threads):
        for ours, theirs in zip(run(), by_torch(run), strict=True):
            assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("n_in", "n_out"), [(16, 16), (64, 64), (64, 48), (128, 256), (48, 160)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [1, 700])
def test_a_linear_map_and_its_gradients(rows, n_in, n_out, bias, by_torch):
    torch.manual_seed(0)
    layer, x = Linear(n_in, n_out, bias=bias), torch.randn(rows, n_in, requires_grad=True)
    assert worthwhile(x, layer.weight) and not worthwhile(x, layer.weight.detach())

    def run():
        y, positive = layer(x), layer.relu(x)
        gradients = torch.autograd.grad((y**2).sum() + (3 * positive).sum(), [x, *layer.parameters()])
        return y, positive, *gradients

    ours = run()
    assert type(ours[0].grad_fn).__name__ == "CompiledLinearBackward"
    for one, other in zip(ours, by_torch(run), strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-2)


def test_rows_that_are_one_row_many_times(by_torch):
    torch.manual_seed(0)
    layer, row = Linear(64, 64), torch.randn(64)

    def run():
        found = []
        for rows in (1, 200):
            y = layer(row.expand(rows, 64))
            found += [y, *torch.autograd.grad((y**2).sum(), layer.parameters())]
        return found

    for ours, theirs in zip(run(), by_torch(run), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-3)


def test_rows_of_another_width_are_refused():
    with pytest.raises(RuntimeError, match="shapes"):
        Linear(32, 16)(torch.randn(4, 16))


def test_what_is_not_a_number_stays_so():
    assert Linear(16, 16).relu(torch.full((2, 16), torch.nan)).isnan().all()
