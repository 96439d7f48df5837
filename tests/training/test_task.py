import numpy as np
import pytest
import torch

from mpad.errors import InputError
from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.training.task import BestWeights, EarlyStopping, hold_out, make_examples


def test_documents_are_chosen_with_their_targets():
    graphs, _ = graphs_of_words(["a", "b c", "d e f"])
    examples = make_examples(CorpusTensors(graphs), np.array([2, 0]), np.array([10, 11, 12]))
    assert examples.documents.tolist() == [2, 0] and examples.targets.tolist() == [12, 10]
    assert examples.weights.tolist() == [1, 1] and len(examples) == 2


def test_best_by_accuracy_then_loss():
    judge = EarlyStopping(patience=3)
    for epoch, (accuracy, loss, is_best) in enumerate(
        [(0.5, 1.0, True), (0.6, 1.0, True), (0.6, 0.9, True), (0.6, 0.95, False)], start=1
    ):
        assert judge.offer(epoch, accuracy, loss) == is_best
    assert not judge.out_of_patience
    judge.offer(5, 0.1, 0.1)
    assert judge.out_of_patience  # three epochs without a better accuracy
    assert not judge.offer(6, 1.0, 0.0) and judge.epoch == 3  # what comes later does not count


def test_the_best_weights_come_back():
    model = torch.nn.Linear(1, 1, bias=False)
    best = BestWeights(model, stacked=False)
    best.restore()  # nothing kept yet: nothing happens
    for value, is_best in ((1.0, True), (3.0, True), (4.0, False)):
        torch.nn.init.constant_(model.weight, value)
        if is_best:
            best.keep([0])
    best.restore()
    assert model.weight.item() == 3


def test_each_stacked_model_keeps_its_own():
    model = torch.nn.Linear(1, 1, bias=False)
    model.weight = torch.nn.Parameter(torch.zeros(2, 1, 1))
    best = BestWeights(model, stacked=True)
    best.keep([0, 1])
    torch.nn.init.constant_(model.weight, 7.0)
    best.keep([1])
    torch.nn.init.constant_(model.weight, 9.0)
    best.restore()
    assert model.weight.flatten().tolist() == [0, 7]


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
