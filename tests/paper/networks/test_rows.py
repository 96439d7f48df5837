import pytest
import torch
from torch import nn

from mpad.paper.networks.rows import run_filled, run_packed


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
@pytest.mark.parametrize("both", [True, False])
def test_filled_rows_give_what_packed_ones_give(kind, both):
    torch.manual_seed(0)
    layer = kind(3, 4, batch_first=True, bidirectional=both)
    x, length = torch.randn(5, 7, 3), torch.tensor([7, 1, 4, 2, 7])
    for one, other in zip(run_filled(layer, x, length), run_packed(layer, x, length), strict=True):
        assert one.shape == other.shape and torch.allclose(one, other, atol=1e-6)


def test_what_is_filled_up_is_never_read():
    torch.manual_seed(0)
    layer, length = nn.GRU(3, 4, batch_first=True, bidirectional=True), torch.tensor([2, 3])
    x = torch.randn(2, 5, 3)
    other = x.clone()
    other[0, 2:], other[1, 3:] = 100.0, -100.0
    assert torch.equal(run_filled(layer, x, length)[1], run_filled(layer, other, length)[1])
