"""Several networks as one model: trained apart, answering together."""

import numpy as np
import pytest

from mpad import MPADClassifier
from mpad.ensemble import Ensemble
from mpad.errors import InputError
from mpad.evaluate.cross_validation import cross_validate
from mpad.inference import load

WORDS = {"good": ["fine", "great", "lovely", "superb"], "bad": ["awful", "poor", "dull", "dreadful"]}
OTHERS = ["film", "plot", "the", "a", "actor", "was", "scene"]


def documents(n, seed=0):
    generator = np.random.default_rng(seed)
    labels = generator.choice(list(WORDS), n)
    texts = [
        " ".join(generator.permutation([*generator.choice(WORDS[k], 2), *generator.choice(OTHERS, 5)])) for k in labels
    ]
    return texts, labels.tolist()


def classifier(**options):
    return MPADClassifier(
        **{"members": 3, "max_epochs": 3, "hidden": 16, "random_state": 0, "device": "cpu", **options}
    )


@pytest.mark.parametrize("variant", ["mpad", "sentence-att", "path"])
@pytest.mark.parametrize("vectors", [None, "corpus"])
@pytest.mark.parametrize("potentials", [True, False])
def test_members_answer_by_their_mean(variant, vectors, potentials, tmp_path):
    if vectors == "corpus":
        pytest.importorskip("gensim")
    texts, labels = documents(80)
    model = classifier(variant=variant, vectors=vectors, potentials=potentials, vector_size=12).fit(texts, labels)
    network = model.model_.network
    assert isinstance(network, Ensemble)
    packed = model.model_.pack(texts)
    by_torch = network.answer_by_torch(packed).with_potentials(model.model_.potentials, packed)
    answer = model.model_.answer(packed)
    assert np.allclose(answer.member_logits.mean(0), answer.logits, atol=1e-5)
    assert answer.member_logits.std(0).min() > 0, "members differ"
    for name in ("logits", "vectors", "word_attention", "member_logits"):
        assert np.allclose(getattr(answer, name), getattr(by_torch, name), atol=1e-4), name
    assert answer.vectors.shape == (80, 3 * 16) == model.transform(texts).shape
    assert model.transform([]).shape == (0, 3 * 16)

    model.save(tmp_path / "model")
    again, light = MPADClassifier.load(tmp_path / "model", "cpu"), load(tmp_path / "model")
    assert again.members == 3
    assert again.interrupted_ is False
    assert np.array_equal(again.predict_proba(texts), model.predict_proba(texts))
    assert np.array_equal(light.predict_proba(texts), model.predict_proba(texts))
    explained = again.explain(texts[0])
    assert len(explained.words) == len(texts[0].split())


def test_first_member_is_the_model_of_one():
    texts, labels = documents(60)
    options = {"vectors": None, "potentials": False, "preset": "paper"}
    one, three = classifier(members=1, **options).fit(texts, labels), classifier(**options).fit(texts, labels)
    losses = [[report.train_loss for report in model.history_] for model in (one, three)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4), "but for the order of sums"
    assert three.card_["members"] == 3
    assert three.card_["held_out"] > one.card_["held_out"], "each member holds out a part of its own"


def test_spread_over_members():
    texts, labels = documents(60)
    model = classifier().fit(texts, labels)
    probabilities, spread = model.predict_proba(texts[:7], return_std=True)
    assert probabilities.shape == spread.shape == (7, 2)
    assert np.array_equal(probabilities, model.predict_proba(texts[:7]))
    assert (spread > 0).all() and (spread < 0.5).all()
    with pytest.raises(InputError, match="members=5"):
        classifier(members=1).fit(texts, labels).predict_proba(texts, return_std=True)


def test_members_cross_validate_as_they_fit():
    texts, labels = documents(90)
    rows = np.arange(90)
    (result,) = cross_validate(classifier(vectors=None), texts, labels, cv=[(rows[:60], rows[60:])])
    assert isinstance(result.estimator.model_.network, Ensemble)
    assert result.test_accuracy == pytest.approx(result.estimator.score(texts[60:], labels[60:]))
    assert result.test_accuracy > 0.9


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, 1000, "many"])
def test_wrong_numbers_of_members_are_refused(wrong):
    with pytest.raises(InputError, match="members must be a whole number from 1 to 100"):
        classifier(members=wrong).fit(*documents(20))


def test_members_have_no_checkpoint(tmp_path):
    with pytest.raises(InputError, match="of one network"):
        classifier().fit(*documents(20), checkpoint=tmp_path / "model.checkpoint")


def test_interrupted_members_leave_those_that_are_done():
    seen = []

    def interrupt(report):
        seen.append(report)
        if report.model == 1 and report.epoch == 2:
            raise KeyboardInterrupt

    texts, labels = documents(400)
    texts = [f"{text} {' '.join(f'w{k}' for k in range(20))}" for text in texts]  # so long that they train in turn
    model = classifier(batch_size=128).fit(texts, labels, sink=interrupt, keep_interrupted=True)
    assert {report.model for report in seen} == {0, 1}
    assert model.interrupted_
    assert model.model_.network.config.members == 2
    assert model.score(texts, labels) > 0.9
