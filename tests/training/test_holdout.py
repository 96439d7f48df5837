import numpy as np
import pytest

from mpad._training.holdout import hold_out
from mpad.errors import InputError


def test_class_by_class():
    targets = np.array([0] * 50 + [1] * 10 + [2])
    train, held = hold_out(targets, 0.1, seed=0)
    assert np.bincount(targets[held], minlength=3).tolist() == [5, 1, 0]
    assert sorted([*train, *held]) == list(range(61))
    assert np.array_equal(held, hold_out(targets, 0.1, seed=0)[1])


def test_one_document_per_class_holds_out_nothing():
    assert len(hold_out(np.arange(5), 0.5, seed=0)[1]) == 0


def test_bad_fraction():
    with pytest.raises(InputError, match="below 1"):
        hold_out(np.arange(5), 1.0, seed=0)
