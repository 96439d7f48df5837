import numpy as np
import pytest

from mpad import compare
from mpad.errors import InputError
from mpad.evaluate.comparison import _p_value
from mpad.paper import zoo


def test_models_are_tested_on_the_same_folds(fruit_corpus):
    seen = []
    options = {"hidden": 8, "vector_size": 8, "max_epochs": 3, "device": "cpu", "random_state": 0}
    models = {"svm": zoo.make("tfidf-svm"), "again": zoo.make("tfidf-svm"), "mpad": zoo.make("mpad", **options)}
    found = compare(models, *fruit_corpus, folds=3, done=lambda *call: seen.append(call))
    assert [scores.name for scores in found] == list(models) and len(seen) == 9
    svm, again, mpad = found
    assert np.array_equal(svm.micro_f1, svm.accuracy)  # of one label a document
    assert np.array_equal(svm.accuracy, again.accuracy) and svm.p_value is None and again.p_value == 1.0
    assert 0 <= mpad.p_value <= 1 and mpad.megabytes > 0 and mpad.documents_a_second > 0
    assert svm.accuracy.mean() > 0.8 and (svm.fit_seconds > 0).all()


def test_the_corrected_test_worked_out_by_hand():
    """Differences 1, 2, 3 with a test part half as large as the training part: t = 2 / √((1/3 + 1/2) · 1)."""
    from scipy.stats import t

    assert _p_value(np.array([1.0, 2.0, 3.0]), 0.5) == pytest.approx(2 * t.sf(2 / (5 / 6) ** 0.5, 2))
    assert _p_value(np.array([1.0, 1.0]), 0.5) == 0.0


def test_what_cannot_be_compared(fruit_corpus):
    with pytest.raises(InputError, match="folds must be from 2 to 60"):
        compare({"svm": zoo.make("tfidf-svm")}, *fruit_corpus, folds=61)
    with pytest.raises(InputError, match="at least one model"):
        compare({}, *fruit_corpus)


def test_many_labels_a_document(fruit_corpus):
    texts, labels = fruit_corpus
    tags = [[label, "odd"] if k % 3 else [label] for k, label in enumerate(labels)]
    options = {"hidden": 8, "vector_size": 8, "max_epochs": 2, "device": "cpu", "random_state": 0}
    models = {"tfidf-svm": zoo.make("tfidf-svm"), "mpad": zoo.make("mpad", **options), "cnn": zoo.make("cnn", **QUICK)}
    svm, mpad, _ = compare(models, texts, tags, folds=2)
    assert svm.micro_f1.mean() > 0.7 and 0 <= mpad.p_value <= 1
    assert (svm.accuracy <= svm.micro_f1).all() and svm.interval.low <= svm.micro_f1.mean() <= svm.interval.high
    matrix = np.array([["fruit" in own, "odd" in own, "tool" in own] for own in tags], int)
    (same,) = compare({"tfidf-svm": zoo.make("tfidf-svm")}, texts, matrix, folds=2)
    assert np.array_equal(same.micro_f1, svm.micro_f1)
    with pytest.raises(InputError, match="these models give one: wmd, spgk; leave them out"):
        compare({**models, "wmd": zoo.make("wmd"), "spgk": zoo.make("spgk")}, texts, tags, folds=2)


QUICK = {"vector_size": 8, "max_epochs": 1, "device": "cpu", "random_state": 0, "maps": 4}
