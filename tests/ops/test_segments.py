import torch

from mpad.ops.segments import segment_softmax, segment_sum

OWNER = torch.tensor([0, 0, 2, 2, 2])


def test_sums_and_empty_groups():
    x = torch.arange(10.0).view(5, 2)
    assert segment_sum(x, OWNER, 4).tolist() == [[2, 4], [0, 0], [18, 21], [0, 0]]


def test_softmax_is_torchs_within_each_group():
    score = torch.tensor([1.0, 2.0, -3.0, 0.5, 700.0])
    alpha = segment_softmax(score, OWNER, 4)
    assert torch.allclose(alpha[:2], score[:2].softmax(0)) and torch.allclose(alpha[2:], score[2:].softmax(0))


def test_gradients():
    score = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: segment_softmax(s, OWNER, 4), score)
