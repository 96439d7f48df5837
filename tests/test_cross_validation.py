import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

from mpad import MPADClassifier, cross_validate
from mpad.errors import InputError


def quick(**options):
    defaults = {"hidden": 8, "vector_size": 8, "max_epochs": 6, "patience": None, "learning_rate": 0.02}
    return MPADClassifier(**{**defaults, "batch_size": 16, "random_state": 0, "device": "cpu", **options})


def test_every_fold_of_every_setting(fruit_corpus):
    texts, labels = fruit_corpus
    results = cross_validate([quick(), quick(learning_rate=0.01, dropout=0.2)], texts, labels, cv=3)
    assert [(result.setting, result.fold) for result in results] == [(s, f) for s in range(2) for f in range(3)]
    tested = np.concatenate([result.test for result in results[:3]])
    assert sorted(tested.tolist()) == list(range(len(texts)))
    for result in results:
        own = [texts[k] for k in result.test], [labels[k] for k in result.test]
        assert result.estimator.score(*own) == pytest.approx(result.test_accuracy)
        best = max(report.validation_accuracy for report in result.reports)
        assert result.validation_accuracy == best and result.best_epoch == result.estimator.best_epoch_
    assert np.mean([result.test_accuracy for result in results]) > 0.6


@pytest.mark.parametrize("batch_size", [16, 80])  # stacked, and one after another
def test_a_fold_is_what_fit_alone_makes_of_it(fruit_corpus, batch_size):
    """With the same vocabulary: the training part is all documents, the test part some of them."""
    texts, labels = fruit_corpus
    everything = np.arange(len(texts))
    estimator = quick(max_epochs=2, batch_size=batch_size)
    folds = [(everything, everything[:20]), (everything, everything[20:30])]
    for result in cross_validate(estimator, texts, labels, cv=folds):
        alone = clone(estimator).fit(texts, labels)
        assert result.reports[0].train_loss == pytest.approx(alone.history_[0].train_loss, abs=1e-3)
        assert np.allclose(result.estimator.predict_proba(texts), alone.predict_proba(texts), atol=5e-3)


def test_splitters_and_reports(fruit_corpus):
    seen = []
    results = cross_validate(quick(max_epochs=2), *fruit_corpus, cv=KFold(2), sink=seen.append)
    assert len(results) == 2 and {report.model for report in seen} == {0, 1}
    assert all(report.watched_accuracy is not None for report in seen)


def test_what_cannot_train_together(fruit_corpus):
    with pytest.raises(InputError, match="differ in hidden too"):
        cross_validate([quick(), quick(hidden=4)], *fruit_corpus)
    with pytest.raises(InputError, match="at least 2 folds"):
        cross_validate(quick(), *fruit_corpus, cv=1)
    with pytest.raises(InputError, match="found none"):
        cross_validate([], *fruit_corpus)
    with pytest.raises(InputError, match="119 labels"):
        cross_validate(quick(), fruit_corpus[0], fruit_corpus[1][1:])
