"""Training that goes on from a fitted model."""

import numpy as np
import pytest

from mpad import MPADClassifier
from mpad.errors import InputError
from mpad.training.task import hold_out

QUICK = {"hidden": 8, "vector_size": 8, "batch_size": 16, "random_state": 0, "device": "cpu", "vectors": None}


def make(**options):
    return MPADClassifier(**{**QUICK, "max_epochs": 3, **options})


def loss(model, texts, labels):
    rows = model.predict_proba(texts)[np.arange(len(texts)), np.searchsorted(model.classes_, labels)]
    return -np.log(rows).mean()


@pytest.mark.parametrize("preset", ["best", "paper"])
def test_a_second_fit_goes_on_from_the_first(fruit_corpus, preset):
    texts, labels = fruit_corpus
    options = {"preset": preset, "max_epochs": 12, "learning_rate": 0.02}
    model = make(**options, warm_start=True).fit(texts, labels)
    first = model.history_[0].train_loss
    model.fit(texts, labels)
    assert model.history_[0].train_loss < 0.8 * first
    anew = make(**options).fit(texts, labels)
    assert anew.history_[0].train_loss == pytest.approx(first)


def test_rows_of_learnt_vectors_follow_their_words(fruit_corpus):
    """After a fit on other words in another order, a word that both have starts from the row that it had."""
    texts, labels = fruit_corpus
    model = make(preset="paper", warm_start=True).fit(texts, labels)
    before = model.model_
    # A rate this small leaves rows where they start.
    model.set_params(learning_rate=1e-12).fit([text + " zebra zebra zebra" for text in texts], labels)
    after = model.model_
    for word in ("apple", "drill", "the"):
        old, new = (m.network.vectors[m.vocabulary.id(word)].detach().numpy() for m in (before, after))
        np.testing.assert_allclose(old, new, atol=1e-6)
    assert after.vocabulary.id("zebra") != before.vocabulary.id("zebra")


def test_documents_that_were_learnt_from_are_not_held_out_again(fruit_corpus, tmp_path):
    texts, labels = fruit_corpus
    model = make(warm_start=True).fit(texts, labels)
    held = model.card_["held_out"]
    model.save(tmp_path / "m")
    loaded = MPADClassifier.load(tmp_path / "m", device="cpu")
    np.testing.assert_array_equal(loaded.trained_on_, model.trained_on_)
    loaded.fit(texts, labels)  # the parameter travels with the folder
    assert loaded.warm_start and loaded.card_["held_out"] == held
    assert len(loaded.trained_on_) == len(model.trained_on_), "the same documents were held out"
    loaded.fit(texts[:60], labels[:60])
    assert loaded.card_["held_out"] <= held


def test_only_marked_documents_are_held_out():
    targets = np.arange(100) % 2
    among = np.arange(100) < 30
    learnt, held = hold_out(targets, 0.1, 0, among)
    assert len(held) == 10 and held.max() < 30 and len(learnt) == 90
    learnt, held = hold_out(targets, 0.1, 0, np.zeros(100, bool))
    assert not len(held) and len(learnt) == 100


def test_new_classes_are_refused(fruit_corpus):
    texts, labels = fruit_corpus
    model = make(warm_start=True).fit(texts, labels)
    others = ["car" if label == "tool" else label for label in labels]
    with pytest.raises(InputError, match=r"cannot add classes when continuing training: car"):
        model.fit(texts, others)
    with pytest.raises(InputError, match="training: car"):
        model.partial_fit(["a car"], ["car"])
    assert model.predict(["a ripe plum"]) == ["fruit"]


def test_another_shape_is_refused(fruit_corpus):
    model = make(warm_start=True).fit(*fruit_corpus)
    with pytest.raises(InputError, match="has another shape"):
        model.set_params(hidden=16).fit(*fruit_corpus)
    with pytest.raises(InputError, match="one network"):
        model.set_params(hidden=8, members=2).fit(*fruit_corpus)


@pytest.mark.parametrize("vectors", [None, "static"])
def test_partial_fit_learns_from_further_documents(fruit_corpus, static_vectors, vectors):
    texts, labels = fruit_corpus
    model = make(vectors=static_vectors if vectors else None, learning_rate=0.02).partial_fit(
        texts, labels, classes=["fruit", "tool"]
    )
    new = ["a quince of the tree", "with quince and so", "he had a chisel", "chisel on it"] * 40
    truth = ["fruit", "fruit", "tool", "tool"] * 40
    before, other, epochs = loss(model, new, truth), model.model_, model.n_iter_
    for _ in range(5):
        model.partial_fit(new, truth)
    assert loss(model, new, truth) < before
    assert model.score(texts, labels) > 0.9
    assert model.n_iter_ == len(model.history_) == epochs + 5
    assert model.model_ is not other and model.model_.potentials is other.potentials
    assert model.predict([new[0]])[0] == model.predict(new[:3])[0]


def test_the_first_call_needs_every_class(fruit_corpus):
    with pytest.raises(InputError, match=r"documents of every class; there are none of \['car'\]"):
        make().partial_fit(*fruit_corpus, classes=["car", "fruit", "tool"])


def test_many_labels_go_on_too(fruit_corpus):
    texts, labels = fruit_corpus
    many = [[label] if k % 3 else [label, "odd"] for k, label in enumerate(labels)]
    model = make(warm_start=True).fit(texts, many).fit(texts, many).partial_fit(texts[:20], many[:20])
    assert model.classes_.tolist() == ["fruit", "odd", "tool"]
    with pytest.raises(InputError, match="training: rare"):
        model.fit(texts, [[*row, "rare"] for row in many])
