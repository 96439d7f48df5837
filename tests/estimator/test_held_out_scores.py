import random
from dataclasses import replace

import numpy as np
import pytest

from mpad import MPADClassifier
from mpad.data.labels import Labels
from mpad.errors import DataWarning, InputError
from mpad.estimator.held_out_scores import score_held_out, wilson
from mpad.evaluate.comparison import compare
from mpad.evaluate.cross_validation import cross_validate
from mpad.paper import zoo

QUICK = {"hidden": 8, "vector_size": 8, "max_epochs": 4, "learning_rate": 0.02, "random_state": 0, "device": "cpu"}


def noise(n, seed=0, words=300):
    """Documents whose labels are drawn at random: nothing can be learned that holds for new ones."""
    generator = random.Random(seed)
    texts = [" ".join(f"w{generator.randrange(words)}" for _ in range(8)) for _ in range(n)]
    return texts, [generator.choice("ab") for _ in range(n)]


@pytest.mark.parametrize("preset", ["best", "paper", "authors"])
def test_documents_given_as_validation_are_never_trained_on(preset):
    texts, labels = noise(300)
    held = noise(150, seed=1)
    model = MPADClassifier(preset=preset, **QUICK).fit(texts, labels, validation=held)
    assert model.score(*held) < 0.68  # 0.95 and more where the linear part has learned them by heart
    assert model.held_out_.accuracy.value == pytest.approx(model.score(*held), abs=0.03)
    assert model.held_out_.documents == 150 and model.card_["documents"] == 300
    again = MPADClassifier(preset=preset, **QUICK).fit(texts, labels, validation=held, refit=True)
    assert again.held_out_ == model.held_out_
    if preset == "best":
        assert again.score(*held) > 0.85  # on request they are


def test_validation_labels_do_not_change_the_linear_part():
    texts, labels = noise(200)
    held, truth = noise(60, seed=1)
    flipped = ["ab"[label == "a"] for label in truth]
    one, other = (MPADClassifier(**QUICK).fit(texts, labels, validation=(held, y)) for y in (truth, flipped))
    assert np.array_equal(one.model_.potentials.potential, other.model_.potentials.potential)
    assert np.array_equal(one.model_.potentials.idf, other.model_.potentials.idf)


def test_refit_needs_validation_documents(fruit_corpus):
    with pytest.raises(InputError, match="validation"):
        MPADClassifier(**QUICK).fit(*fruit_corpus, refit=True)


def test_copies_between_training_and_validation_are_reported(fruit_corpus):
    texts, labels = fruit_corpus
    with pytest.warns(DataWarning, match="2 of 2 validation documents"):
        MPADClassifier(**QUICK).fit(texts, labels, validation=([texts[0].upper(), texts[1]], labels[:2]))


@pytest.mark.parametrize("members", [1, 2])
def test_repeated_documents_do_not_raise_the_held_out_accuracy(members):
    texts, labels = noise(500)  # 50 of them are held out: nobody guesses 40 right
    model = MPADClassifier(members=members, **QUICK).fit(texts * 3, labels * 3)
    assert model.held_out_.accuracy.value < 0.8 and model.held_out_.baseline < 0.8
    assert model.held_out_accuracy_["ngram-svm"] < 0.8 and model.held_out_accuracy_["ngram-stack"] < 0.8
    assert model.summary_.copies.documents == 1000 and model.summary_.copies.conflicts == 0


def test_repeated_documents_do_not_raise_cross_validated_accuracy():
    texts, labels = noise(120)
    results = cross_validate(MPADClassifier(**QUICK), texts * 2, labels * 2, cv=3)
    assert np.mean([result.test_accuracy for result in results]) < 0.7
    for result in results:
        assert not {texts[k % 120] for k in result.test} & {texts[k % 120] for k in range(240) if k not in result.test}
    (scores,) = compare({"tfidf-svm": zoo.make("tfidf-svm")}, texts * 2, labels * 2, folds=3)
    assert scores.accuracy.mean() < 0.7


def test_the_baseline_is_the_one_of_the_zoo():
    texts, labels = noise(200, words=40)
    held = noise(100, seed=1, words=40)
    model = MPADClassifier(**QUICK).fit(texts, labels, validation=held)
    assert model.held_out_.baseline == zoo.make("tfidf-svm").fit(texts, labels).score(*held)
    assert model.held_out_accuracy_["tfidf-svm"] == model.held_out_.baseline


def test_a_model_that_only_knows_the_majority_is_reported():
    labels = Labels(np.array(["neg", "pos"]))
    targets = np.array([1] * 95 + [0] * 5)
    scores = score_held_out(labels, np.tile([0.0, 1.0], (100, 1)), targets, None)
    assert scores.accuracy.value == 0.95 and scores.majority == ("pos", 0.95) and scores.never_right == ("neg",)
    assert scores.macro_f1 == pytest.approx(0.487, abs=1e-3)
    assert sum("warning" in line for line in scores.lines()) == 2


def test_few_documents_are_reported():
    labels = Labels(np.array(["neg", "pos"]))
    scores = score_held_out(labels, np.eye(2)[[0, 1, 0]], np.array([0, 1, 0]), None)
    assert scores.accuracy.low < 0.5 < scores.accuracy.high == 1
    assert any("3 held-out documents" in line for line in scores.lines())
    assert not any("3 held-out documents" in line for line in replace(scores, documents=100).lines())
    assert score_held_out(labels, np.zeros((0, 2)), np.zeros(0, np.int64), None) is None


def test_multi_label_scores_are_not_called_accuracy():
    texts = ["red", "blue", "red blue", "none at all"]
    model = MPADClassifier(**QUICK).fit(
        [f"{text} {k}" for k in range(30) for text in texts], [["r"], ["b"], ["r", "b"], []] * 30
    )
    assert model.held_out_.multilabel and model.held_out_.majority is None
    assert "micro-F1" in model.held_out_.lines()[0] and "accuracy" not in " ".join(model.held_out_.lines())
    assert "validation_micro_f1" in model.card_ and "validation_accuracy" not in model.card_


def test_copies_make_no_interval_narrower():
    labels, targets = Labels(np.array(["neg", "pos"])), np.array([0, 1, 1] * 20)
    logits = np.eye(2)[[0, 1, 0] * 20]
    once = score_held_out(labels, logits, targets, None)
    copied = score_held_out(labels, np.tile(logits, (3, 1)), np.tile(targets, 3), None, np.tile(np.arange(60), 3))
    assert copied.accuracy == pytest.approx(once.accuracy) and copied.documents == 3 * once.documents


def test_the_edges_have_intervals():
    assert wilson(10, 10).high == 1 and wilson(10, 10).low == pytest.approx(0.7225, abs=1e-4)
    assert wilson(0, 10).low == 0 and wilson(0, 10).high == pytest.approx(0.2775, abs=1e-4)
    assert wilson(2, 3)[1:] == pytest.approx((0.2077, 0.9385), abs=1e-4)
    assert wilson(0, 0) == (0, 0, 1)
