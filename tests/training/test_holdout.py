import numpy as np
import pytest

from mpad.errors import InputError
from mpad.training.holdout import hold_out


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


def test_copies_stay_together():
    groups = np.repeat(np.arange(40), 3)
    targets = np.repeat(np.arange(40) % 2, 3)
    for seed in range(20):
        train, held = hold_out(targets, 0.2, seed, groups=groups)
        assert len(held) == 24 and not set(groups[train]) & set(groups[held])


def test_a_class_of_copies_keeps_its_training_documents():
    targets = np.array([0, 0, 0, 0, 1])
    groups = np.array([0, 1, 2, 3, 3])  # the only document of class 1 has the text of one of class 0
    for seed in range(20):
        train, _ = hold_out(targets, 0.7, seed, groups=groups)
        assert set(targets[train]) == {0, 1}


def test_a_group_with_a_seen_document_is_not_held_out():
    seen = np.array([True, False, True, True])
    for seed in range(20):
        _, held = hold_out(np.zeros(4, np.int64), 0.7, seed, among=seen, groups=np.array([0, 0, 1, 2]))
        assert not {0, 1} & set(held.tolist())
