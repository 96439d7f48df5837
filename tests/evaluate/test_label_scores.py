import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_recall_fscore_support

from mpad.data.labels import Labels
from mpad.evaluate.label_scores import LabelScores, score_labels

LABELS = Labels(np.array(["a", "b", "c"]), multilabel=True)


def drawn(n, seed=0):
    generator = np.random.default_rng(seed)
    truth = generator.random((n, 3)) < 0.4
    return LabelScores(["a", "b", "c"], truth, truth ^ (generator.random((n, 3)) < 0.2))


def test_worked_out_by_hand():
    """Right: a once, b once; missed: b once; wrongly given: c once."""
    given = np.array([[1, 1, 0], [0, 0, 1]])
    scores = score_labels(LABELS, [["a", "b"], ["b"]], given)
    assert scores.right.tolist() == [1, 1, 0] and scores.missed.tolist() == [0, 1, 0]
    assert scores.wrong.tolist() == [0, 0, 1] and scores.micro == (2 / 3, 2 / 3, 2 / 3)
    assert scores.macro_f1.value == pytest.approx((1 + 2 / 3) / 2)  # no document has c
    assert scores.exact.value == 0.5
    assert len(scores.lines()) == len(drawn(300).lines()) + 1  # a note on c


def test_it_is_what_scikit_learn_says():
    scores = drawn(300)
    precision, recall, f1, support = precision_recall_fscore_support(scores.truth, scores.predicted)
    assert np.allclose(scores.precision, precision) and np.allclose(scores.recall, recall)
    assert np.allclose(scores.f1, f1) and (scores.right + scores.missed).tolist() == support.tolist()
    for average, measured in (("micro", scores.micro_f1), ("macro", scores.macro_f1)):
        assert measured.value == pytest.approx(f1_score(scores.truth, scores.predicted, average=average))


@pytest.mark.parametrize("which", ["micro_f1", "macro_f1"])
def test_intervals_are_as_wide_as_those_of_the_bootstrap(which):
    scores, generator = drawn(400), np.random.default_rng(1)
    values = []
    for _ in range(400):
        rows = generator.integers(0, 400, 400)
        values.append(getattr(LabelScores(scores.names, scores.truth[rows], scores.predicted[rows]), which).value)
    assert getattr(scores, which).margin == pytest.approx(1.96 * np.std(values), rel=0.15)


def test_a_label_that_the_model_does_not_know_is_missed():
    scores = score_labels(LABELS, [["a", "new"], "b", []], np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0]]))
    assert scores.names == ["a", "b", "c", "new"] and scores.missed.tolist() == [0, 0, 0, 1]
    assert scores.macro_f1.value == pytest.approx(2 / 3) and scores.exact.value == pytest.approx(2 / 3)


def test_documents_without_any_label():
    scores = score_labels(LABELS, [[], []], np.zeros((2, 3)))
    assert scores.micro_f1 == (0.0, 0.0) and scores.macro_f1 == (0.0, 0.0) and scores.exact.value == 1.0
