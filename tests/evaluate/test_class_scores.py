import numpy as np
import pytest

from mpad.errors import InputError
from mpad.evaluate import ClassScores, LabelScores, evaluate
from mpad.paper import zoo

TEXTS, LABELS = ["good film", "bad film", "good", "bad"] * 5, ["+", "-"] * 10


@pytest.fixture(scope="module")
def svm():
    return zoo.make("tfidf-svm").fit(TEXTS, LABELS)


def test_scores_of_a_model(fitted_flat, fruit_corpus):
    scores = evaluate(fitted_flat, *fruit_corpus)
    assert isinstance(scores, ClassScores)
    assert scores.accuracy.value == pytest.approx(fitted_flat.score(*fruit_corpus))
    assert scores.accuracy.low < scores.accuracy.value <= scores.accuracy.high
    assert scores.matrix.sum() == len(fruit_corpus[0]) and scores.majority[1] == 0.5
    calibration = scores.calibration()
    assert calibration is not None and 0 <= calibration.error <= 1


def test_labels_that_the_model_does_not_know_count_as_mistakes(svm):
    scores = evaluate(svm, ["good", "bad", "fine"], ["+", "-", "?"])
    assert scores.unknown == ["?"] and scores.classes == [*scores.known, "?"]
    assert scores.accuracy.value == pytest.approx(2 / 3)
    precision, recall, f1, support = scores.per_class
    assert support.tolist() == [1, 1, 1] and recall[-1] == 0
    assert scores.macro[2] == pytest.approx(np.mean(f1))
    assert scores.calibration() is None  # an SVM has no probabilities


def test_multilabel_models_have_label_scores(fruit_corpus):
    model = zoo.make("tfidf-svm").fit(TEXTS, [["good"], ["bad", "film"]] * 10)
    scores = evaluate(model, TEXTS, [["good"], ["bad", "film"]] * 10)
    assert isinstance(scores, LabelScores) and scores.exact.value == 1 and scores.unknown == ()


def test_lists_of_labels_are_refused_by_a_single_label_model(svm):
    with pytest.raises(InputError):
        evaluate(svm, ["good"], [["+"]])
