import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold

from mpad import MPADClassifier, cross_validate
from mpad.errors import InputError
from mpad.evaluate.cross_validation import cross_validate_in_turn, vector_rows


def quick(**options):
    defaults = {"hidden": 8, "vector_size": 8, "max_epochs": 6, "patience": None, "learning_rate": 0.02}
    return MPADClassifier(
        **{"preset": "paper", **defaults, "batch_size": 16, "random_state": 0, "device": "cpu", **options}
    )


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


def test_a_seed_learns_the_same_beside_others(fruit_corpus):
    """Its own word rows included, where these are learnt."""
    everything = np.arange(len(fruit_corpus[0]))
    settings = [quick(random_state=seed, max_epochs=1) for seed in (0, 1)]
    _, beside = cross_validate(settings, *fruit_corpus, cv=[(everything, everything[:20])])
    alone = clone(settings[1]).fit(*fruit_corpus)
    assert beside.reports[0].train_loss == pytest.approx(alone.history_[0].train_loss, abs=1e-4)


def test_splitters_and_reports(fruit_corpus):
    seen = []
    results = cross_validate(quick(max_epochs=2), *fruit_corpus, cv=KFold(2), sink=seen.append)
    assert len(results) == 2 and {report.model for report in seen} == {0, 1}
    assert all(report.watched_accuracy is not None for report in seen)


@pytest.mark.parametrize("batch_size", [16, 200])
def test_test_accuracy_every_epoch_or_once(fruit_corpus, batch_size):
    estimator = quick(max_epochs=4, batch_size=batch_size)
    every = cross_validate(estimator, *fruit_corpus, cv=2)
    once = cross_validate(estimator, *fruit_corpus, cv=2, watch=False)
    assert [result.test_accuracy for result in once] == [result.test_accuracy for result in every]
    assert all(report.watched_accuracy is None for result in once for report in result.reports)


def test_what_cannot_train_together(fruit_corpus):
    with pytest.raises(InputError, match="differ in hidden too"):
        cross_validate([quick(), quick(hidden=4)], *fruit_corpus)
    with pytest.raises(InputError, match="at least 2 folds"):
        cross_validate(quick(), *fruit_corpus, cv=1)
    with pytest.raises(InputError, match="found none"):
        cross_validate([], *fruit_corpus)
    with pytest.raises(InputError, match="119 labels"):
        cross_validate(quick(), fruit_corpus[0], fruit_corpus[1][1:])


def test_triples_say_which_documents_choose_the_epoch(fruit_corpus):
    texts, labels = fruit_corpus
    rows = np.arange(len(texts))
    fold = rows[:80], rows[80:100], rows[100:]
    (result,) = cross_validate(quick(), texts, labels, cv=[fold])
    alone = quick().fit(texts[:80], labels[:80], validation=(texts[80:100], labels[80:100]))
    assert result.reports[0].train_loss == pytest.approx(alone.history_[0].train_loss, abs=0.05)
    held = result.estimator.score(texts[80:100], labels[80:100])
    assert held == pytest.approx(result.validation_accuracy) and result.test.tolist() == list(range(100, 120))
    for wrong in ((rows,), (rows, rows + 1), (rows, rows[:0]), (rows, rows / 2)):
        with pytest.raises(InputError, match="fold 0: expected"):
            cross_validate(quick(), texts, labels, cv=[wrong])
    (masked,) = cross_validate(quick(), texts, labels, cv=[(rows < 80, (80 <= rows) & (rows < 100), rows >= 100)])
    assert masked.test_accuracy == result.test_accuracy


def test_results_are_yielded_as_soon_as_a_fold_is_trained(fruit_corpus):
    """On a CPU folds train one after another: nothing of the later ones has run before the first."""
    seen = []
    estimator = quick(max_epochs=2, batch_size=16)
    results = cross_validate_in_turn(estimator, *fruit_corpus, cv=3, sink=lambda report: seen.append(report.model))
    first = next(results)
    assert first.together == 1 and set(seen) == {0} and first.seconds > 0
    assert len(list(results)) == 2


def test_vectors_are_not_learnt_from_test_documents():
    folds = [(np.array([0, 1]), None, np.array([2])), (np.array([0, 2]), None, np.array([1]))]
    assert vector_rows(4, folds).tolist() == [0, 3]
    assert vector_rows(2, [(np.array([1]), None, np.array([0])), (np.array([0]), None, np.array([1]))]).tolist() == [
        0,
        1,
    ]


def test_words_of_the_test_part_alone_get_no_learnt_vector(fruit_corpus):
    pytest.importorskip("gensim")
    texts, labels = fruit_corpus[0][:60], fruit_corpus[1][:60]
    rows = np.arange(60)
    found = []
    for word in ("zebra", "yak"):
        marked = [*texts[:50], *[f"{text} {word}" for text in texts[50:]]]
        found += cross_validate(quick(vectors="corpus", max_epochs=1), marked, labels, cv=[(rows[:50], rows[50:])])
    held, without = found
    assert np.array_equal(held.estimator.model_.network.vectors, without.estimator.model_.network.vectors)


def test_many_labels_a_document(fruit_corpus):
    texts, labels = fruit_corpus
    tags = [[label, "odd"] if k % 3 else [label] for k, label in enumerate(labels)]
    options = {"hidden": 8, "vector_size": 8, "max_epochs": 6, "learning_rate": 0.02, "device": "cpu"}
    model = MPADClassifier(random_state=0, batch_size=16, vectors=None, **options)
    results = cross_validate(model, texts, tags, cv=3)
    assert sorted(np.concatenate([result.test for result in results]).tolist()) == list(range(120))
    for result in results:
        assert result.estimator.classes_.tolist() == ["fruit", "odd", "tool"] and len(result.test_f1) == 2
        given = result.estimator.predict([texts[k] for k in result.test])
        truth = result.estimator.labels_.as_predicted([tags[k] for k in result.test])
        assert result.test_f1[0] == pytest.approx(f1_score(truth, given, average="micro"))
        assert result.test_accuracy > 0.5
    assert cross_validate(model, texts, labels, cv=2)[0].test_f1 is None
