import pytest

from mpad.estimator.held_out_scores import wilson


def test_the_edges_have_intervals():
    assert wilson(10, 10).high == 1 and wilson(10, 10).low == pytest.approx(0.7225, abs=1e-4)
    assert wilson(0, 10).low == 0 and wilson(0, 10).high == pytest.approx(0.2775, abs=1e-4)
    assert wilson(2, 3)[1:] == pytest.approx((0.2077, 0.9385), abs=1e-4)
    assert wilson(0, 0) == (0, 0, 1)
