"""Fits that start from an encoder."""

import numpy as np
import pytest

from mpad import MPADClassifier, StreamOptions
from mpad import inference as runtime
from mpad.errors import InputError
from mpad.estimator import classifier as fitting
from mpad.export.int8_folder import export_int8

GOOD, BAD = (
    ["a wonderful film , i loved it", "great acting and a good story"],
    ["an awful film , i hated it", "bad acting"],
)
ENDS = ["in the end .", "for sure .", "they say .", "this year .", "once more ."]


@pytest.fixture(scope="module")
def reviews():
    texts = [f"{review} {end} {k}" for k in range(40) for review in (*GOOD, *BAD) for end in ENDS[:1]]
    labels = ["good" if any(text.startswith(review) for review in GOOD) else "bad" for text in texts]
    return texts, labels


def trained(**options):
    return MPADClassifier(random_state=0, device="cpu", verbose=False, **options)


@pytest.fixture(scope="module")
def few(reviews):
    return trained().fit(*reviews)


@pytest.fixture(scope="module")
def tuned(reviews):
    return trained(max_epochs=2).fit(*reviews)


def test_few_labels_are_fitted_whole_and_scored_by_cross_validation(few, reviews):
    assert few.encoder_ is not None and few.history_ == [] and few.n_iter_ == 0
    assert few.held_out_.folds == 5 and few.held_out_.documents == len(reviews[0])
    assert few.predict(["i liked this lovely story", "this is terrible"]).tolist() == ["good", "bad"]
    assert set(few.trained_on_) and "cross-validation" in few.held_out_.lines()[0]


def test_with_more_epochs_the_network_is_trained(tuned):
    assert tuned.n_iter_ == 2 and tuned.held_out_.folds == 0
    assert tuned.predict(["i liked this lovely story", "this is terrible"]).tolist() == ["good", "bad"]


@pytest.mark.parametrize("name", ["few", "tuned"])
def test_saved_and_loaded_it_predicts_the_same(name, request, reviews, tmp_path):
    model, texts = request.getfixturevalue(name), [*reviews[0][:20], "unheardofword", ""]
    expected = model.predict_proba(texts)
    model.save(tmp_path / "model")
    assert np.allclose(MPADClassifier.load(tmp_path / "model", device="cpu").predict_proba(texts), expected, atol=1e-5)
    assert np.allclose(runtime.load(tmp_path / "model").predict_proba(texts), expected, atol=1e-5)
    export_int8(tmp_path / "model", tmp_path / "small")
    assert np.allclose(runtime.load(tmp_path / "small").predict_proba(texts), expected, atol=0.1)


@pytest.mark.parametrize("name", ["few", "tuned"])
@pytest.mark.parametrize("method", ["gradients", "occlusion", "attention"])
def test_it_is_explained(name, method, request):
    explanation = request.getfixturevalue(name).explain("a wonderful film", method=method)
    assert len(explanation.words) == 3


def test_weights_add_up_to_the_log_odds(few):
    explanation = few.explain("not a wonderful film")
    total = explanation.baseline + sum(word.weight for word in explanation.words)
    assert total == pytest.approx(explanation.total, abs=0.05)


def test_validation_documents_score_a_model_of_few_labels(reviews):
    texts, labels = reviews
    model = trained().fit(texts[:100], labels[:100], validation=(texts[100:], labels[100:]))
    assert model.held_out_.documents == 60 and model.held_out_.folds == 0
    again = trained().fit(texts[:100], labels[:100], validation=(texts[100:], labels[100:]), refit=True)
    assert len(again.trained_on_) > len(model.trained_on_)


def test_words_of_another_language_start_at_random():
    german = ["der hund läuft schnell durch den wald", "die katze schläft gern auf dem sofa"] * 10
    model = trained(max_epochs=1).fit(german, ["hund", "katze"] * 10)
    assert model.encoder_ is None and "%" in model.start_.reason


def test_settings_that_an_encoder_does_not_have(reviews, small_folder):
    assert trained(max_epochs=1, hidden=16).fit(*reviews).encoder_ is None
    assert trained(max_epochs=1, encoder=None).fit(*reviews).encoder_ is None
    with pytest.raises(InputError, match="hidden"):
        trained(encoder=small_folder, hidden=32).fit(*reviews)
    with pytest.raises(InputError, match="no encoder"):
        trained(encoder="nowhere").fit(*reviews)


@pytest.mark.parametrize("variant", ["sentence-att", "clique", "path"])
def test_hierarchical_variants_start_from_it(variant, reviews):
    model = trained(variant=variant, max_epochs=1).fit(*reviews)
    assert model.encoder_ is not None and model.score(*reviews) > 0.5


def test_members_training_that_continues_and_small_updates(reviews, tmp_path):
    texts, labels = reviews
    assert trained(members=2, max_epochs=1).fit(texts, labels).encoder_ is not None
    model = trained().fit(texts[:80], labels[:80])
    model.save(tmp_path / "model")
    later = MPADClassifier.load(tmp_path / "model", device="cpu").set_params(warm_start=True, max_epochs=1)
    assert later.fit(texts, labels).score(texts, labels) > 0.9
    assert model.partial_fit(texts[80:], labels[80:]).score(texts, labels) > 0.9


def test_several_labels_per_document(reviews):
    texts, labels = reviews
    several = [[label, "story"] if "story" in text else [label] for text, label in zip(texts, labels, strict=True)]
    model = trained().fit(texts, several)
    assert model.held_out_.multilabel and model.predict(texts[:4]).shape == (4, 3)
    assert model.score(texts, several) > 0.9


def test_streamed_fits_start_from_it(reviews, tmp_path):
    texts, labels = reviews
    rows = "".join(f'"{text}",{label}\n' for text, label in zip(texts, labels, strict=True))
    (tmp_path / "train.csv").write_text(f"text,label\n{rows}")
    model = trained(max_epochs=2).fit_stream(tmp_path / "train.csv", options=StreamOptions(cache=tmp_path / "cache"))
    assert model.encoder_ is not None and model.score(texts, labels) > 0.8


def test_the_size_below_which_labels_are_few(reviews, monkeypatch):
    monkeypatch.setattr(fitting, "FEW_LABELS", 100)
    assert trained().fit(*reviews).n_iter_ == fitting.FINE_TUNING["max_epochs"]
