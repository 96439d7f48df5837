import numpy as np
import pytest

from mpad.inference import segments
from mpad.inference.segments import Groups


@pytest.mark.parametrize("dense", [True, False])
def test_sums_and_softmax_by_hand_with_empty_groups(dense, monkeypatch):
    if not dense:
        monkeypatch.setattr(segments, "_DENSE", 0)
    groups = Groups(np.array([0, 0, 2, 3, 3]))
    x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)
    assert groups.sum(x).tolist() == [[0, 0], [4, 6], [5, 6], [0, 0]]
    assert groups.sum(x, np.array([2, 1, 0], np.float32)).tolist() == [[0, 0], [5, 8], [0, 0], [0, 0]]
    alpha = groups.softmax(np.array([1000.0, 1000.0, -1000.0], np.float32))
    assert alpha.tolist() == [0.5, 0.5, 1.0]
    scores = np.array([1.0, -2.0, 3.0], np.float32)
    assert np.allclose(groups.softmax(scores, small=True), groups.softmax(scores))


def test_no_rows_at_all():
    groups = Groups(np.array([0, 0]))
    assert groups.sum(np.zeros((0, 3), np.float32)).tolist() == [[0, 0, 0]]
    assert groups.softmax(np.zeros(0, np.float32)).shape == (0,)
