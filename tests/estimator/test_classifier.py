import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from mpad import MPADClassifier
from mpad.errors import DataWarning, InputError
from mpad.graph.batch import CorpusTensors
from mpad.inference import pipeline
from mpad.model import MPAD

QUICK = {
    "device": "cpu",
    "hidden": 8,
    "vector_size": 8,
    "max_epochs": 8,
    "learning_rate": 0.02,
    "batch_size": 16,
    "random_state": 0,
}


def test_it_learns(fitted, fruit_corpus):
    assert fitted.score(*fruit_corpus) > 0.95
    assert fitted.predict(["a ripe plum", "the saw and the drill"]).tolist() == ["fruit", "tool"]


def test_a_fit_builds_one_network_and_packs_and_moves_its_documents_once(fruit_corpus, monkeypatch):
    calls = Counter()

    def count(owner, name):
        original = getattr(owner, name)

        def counted(*args, **options):
            calls[owner, name] += 1
            return original(*args, **options)

        monkeypatch.setattr(owner, name, counted)

    for owner, name in ((MPAD, "__init__"), (pipeline, "build_graphs"), (CorpusTensors, "__init__")):
        count(owner, name)
    MPADClassifier(**QUICK, vectors=None).fit(*fruit_corpus)
    assert calls == {(MPAD, "__init__"): 1, (pipeline, "build_graphs"): 1, (CorpusTensors, "__init__"): 1}


class TestScikitLearnsContract:
    def test_parameters(self):
        classifier = MPADClassifier("clique", steps=3)
        parameters = classifier.get_params()
        assert parameters["variant"] == "clique" and parameters["steps"] == 3
        assert clone(classifier).get_params() == parameters
        assert classifier.set_params(hidden=7).hidden == 7
        named = (
            "variant preset steps hidden window directed master_node renormalise combine master_skip tokenizer vectors"
        )
        named += " max_epochs patience batch_size learning_rate dropout validation_fraction class_weight device"
        assert {*named.split(), "random_state", "verbose"} <= set(parameters)

    def test_init_only_stores(self):
        MPADClassifier("no such variant", steps=-1)  # nothing is checked before fit

    def test_fit_returns_self_and_sets_attributes(self, fruit_corpus):
        classifier = MPADClassifier(**QUICK)
        assert classifier.fit(*fruit_corpus) is classifier
        assert classifier.classes_.tolist() == ["fruit", "tool"]
        assert not hasattr(classifier, "n_features_in_")

    def test_not_fitted(self):
        for method in ("predict", "predict_proba", "decision_function", "transform", "explain", "save"):
            with pytest.raises(NotFittedError):
                getattr(MPADClassifier(), method)(["a"])

    def test_tags(self):
        tags = MPADClassifier().__sklearn_tags__()
        assert is_classifier(MPADClassifier())
        assert tags.input_tags.string and not tags.input_tags.two_d_array and tags.classifier_tags.multi_label

    def test_pipeline_grid_search_and_cross_validation(self, fruit_corpus):
        texts, labels = fruit_corpus
        pipeline = make_pipeline(FunctionTransformer(lambda X: [text.upper() for text in X]), MPADClassifier(**QUICK))
        assert pipeline.fit(texts, labels).predict(texts[:3]).shape == (3,)
        search = GridSearchCV(MPADClassifier(**QUICK), {"steps": [1, 2]}, cv=2).fit(np.array(texts), labels)
        assert set(search.best_params_) == {"steps"}
        scores = cross_val_score(MPADClassifier(**QUICK), pd.Series(texts), pd.Series(labels), cv=3)
        assert scores.shape == (3,) and scores.mean() > 0.6

    def test_shapes_and_consistency(self, fitted, fruit_corpus):
        texts = fruit_corpus[0][:7]
        probabilities = fitted.predict_proba(texts)
        assert probabilities.shape == (7, 2) and np.allclose(probabilities.sum(1), 1)
        assert (fitted.classes_[probabilities.argmax(1)] == fitted.predict(texts)).all()
        assert ((fitted.decision_function(texts) > 0) == (probabilities[:, 1] > 0.5)).all()
        assert fitted.transform(texts).shape == (7, 16)
        assert fitted.predict([]).shape == (0,) and fitted.transform([]).shape == (0, 16)

    def test_pickle(self, fitted_flat, fruit_corpus):
        again = pickle.loads(pickle.dumps(fitted_flat))  # as GridSearchCV(n_jobs=2) does
        assert np.array_equal(again.predict_proba(fruit_corpus[0]), fitted_flat.predict_proba(fruit_corpus[0]))


@pytest.mark.parametrize("labels", [["x", "y"] * 10, [4, 7] * 10, [True, False] * 10])
def test_labels_come_back_as_they_went_in(labels):
    classifier = MPADClassifier(**QUICK).fit(["one", "two"] * 10, labels)
    predicted = classifier.predict(["one", "two"])
    assert predicted.tolist() == labels[:2] and predicted.dtype == np.array(labels).dtype


def test_many_labels_a_document():
    texts = ["red", "blue", "red blue", "none"] * 20
    y = np.array([[1, 0], [0, 1], [1, 1], [0, 0]] * 20)
    classifier = MPADClassifier(**{**QUICK, "max_epochs": 30, "patience": None}).fit(texts, y)
    sparse = MPADClassifier(**QUICK).fit(texts, csr_matrix(y))
    assert sparse.predict(texts[:3]).shape == (3, 2)
    assert classifier.predict(["red", "blue", "none"]).tolist() == [[1, 0], [0, 1], [0, 0]]
    assert classifier.predict_proba(texts[:4]).shape == (4, 2)
    explanation = classifier.explain("red blue", label=1)
    assert explanation.predicted == (0, 1) and max(explanation.words, key=lambda word: word.weight).word == "blue"


def test_fifty_classes_and_one_document_per_class():
    texts = [f"word{number}" for number in range(50)]
    classifier = MPADClassifier(**{**QUICK, "hidden": 32, "max_epochs": 150, "dropout": 0.0, "patience": None})
    with pytest.warns(DataWarning, match="nearly as many classes as documents"):
        classifier.fit(texts, np.arange(50))
    assert classifier.score(texts, np.arange(50)) > 0.9


@pytest.mark.parametrize("variant", ["mpad", "sentence-att", "clique", "path"])
def test_two_documents(variant):
    classifier = MPADClassifier(variant, **QUICK).fit(["good. fine", "bad"], ["a", "b"])
    assert classifier.predict_proba(["", "good"]).shape == (2, 2)


def test_documents_without_words_get_an_answer(fitted):
    for text in ("", "  ", "§§§", "\x00\x01"):
        assert np.allclose(fitted.predict_proba([text]).sum(), 1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(text=st.text(st.characters(codec=None)))
def test_any_text_gets_probabilities(fitted, text):
    probabilities = fitted.predict_proba([text, text + " apple"])
    assert np.isfinite(probabilities).all() and np.allclose(probabilities.sum(1), 1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(text=st.text(max_size=40), method=st.sampled_from(["gradients", "occlusion", "attention"]))
def test_any_text_can_be_explained(fitted, text, method):
    explanation = fitted.explain(text, method=method)
    assert all(np.isfinite(word.weight) for word in explanation.words)


@pytest.mark.parametrize(
    ("options", "X", "y", "said"),
    [
        ({}, ["a", "b"], ["x", "x"], "at least two classes in y; found only 'x'"),
        ({}, ["a", "b"], ["x"], "X has 2 documents but y has 1 labels"),
        ({}, "ab", ["x", "y"], "put it in a list"),
        ({"variant": "star"}, ["a", "b"], ["x", "y"], "no variant 'star'"),
        ({"preset": "p"}, ["a", "b"], ["x", "y"], "no preset 'p'"),
        ({"tokenizer": "t"}, ["a", "b"], ["x", "y"], "no tokenizer 't'"),
        ({"device": "toaster"}, ["a", "b"], ["x", "y"], "device 'toaster'"),
        ({"vectors": "nowhere.bin"}, ["a", "b"], ["x", "y"], "nowhere.bin: no such file"),
        ({"validation_fraction": 2}, ["a", "b"], ["x", "y"], "validation_fraction"),
        ({"window": 0}, ["a", "b"], ["x", "y"], "window must be"),
        ({}, ["a", "b", "c"], ["x", None, "y"], "label of document 1 is missing"),
        ({}, ["a", "b", "c"], ["x", float("nan"), "y"], "label of document 1 is missing"),
        ({}, ["a", "b"], [["x"], ["x", 3]], "labels of document 1 are not all strings"),
        ({}, ["a", "b"], [["x"], ["x"]], "at least two labels in y; found x"),
        ({"max_epochs": 2.5}, ["a", "b"], ["x", "y"], "whole number"),
        ({"steps": 1.5}, ["a", "b"], ["x", "y"], "whole number"),
        ({"random_state": -1}, ["a", "b"], ["x", "y"], "random_state"),
        ({"vector_size": 0}, ["a", "b"], ["x", "y"], "at least one number"),
    ],
)
def test_clear_errors(options, X, y, said):
    with pytest.raises(InputError, match=said):
        MPADClassifier(**{**QUICK, **options}).fit(X, y)


def test_validation_of_the_wrong_size():
    with pytest.raises(InputError, match="as many labels as documents"):
        MPADClassifier(**QUICK).fit(["a", "b"], [0, 1], validation=(["a"], []))


def test_vectors_from_a_file_serve_unseen_words(tmp_path, fruit_corpus):
    texts, labels = fruit_corpus
    words = sorted({word for text in texts for word in text.lower().replace(".", "").split()})
    generator = np.random.default_rng(0)
    rows = {word: generator.normal(size=6) for word in words}
    rows["apricot"], rows["wrench"] = rows["apple"], rows["hammer"]
    path = tmp_path / "v.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows.items()))
    options = {**QUICK, "max_epochs": 40, "patience": None, "potentials": False}
    classifier = MPADClassifier(**options, vectors=path).fit(texts, labels)
    assert not classifier.model_.network.config.learn_vectors
    unseen = classifier.predict_proba(["an apricot", "the wrench"])
    known = classifier.predict_proba(["an apple", "the hammer"])
    assert np.allclose(unseen, known, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_vectors_from_the_corpus(fruit_corpus):
    pytest.importorskip("gensim")
    classifier = MPADClassifier(**QUICK, vectors="corpus").fit(*fruit_corpus)
    assert not classifier.model_.network.config.learn_vectors and classifier.model_.network.config.vector_width == 8


def test_the_authors_preset_learns_too(fruit_corpus):
    classifier = MPADClassifier(**{**QUICK, "max_epochs": 40, "patience": None}, preset="authors").fit(*fruit_corpus)
    assert classifier.score(*fruit_corpus) > 0.9


def test_notebooks_show_estimators_and_explanations(fitted_flat):
    assert "MPADClassifier" in fitted_flat._repr_html_() and "<svg" in fitted_flat.explain("an apple")._repr_html_()


def test_history_is_kept_and_drawn(fitted, tmp_path):
    fitted.save(tmp_path / "m")
    again = MPADClassifier.load(tmp_path / "m")
    assert [report.train_loss for report in again.history_] == [report.train_loss for report in fitted.history_]
    pytest.importorskip("matplotlib")
    assert len(again.plot_history().axes) == 2


def test_document_vectors_have_names(fruit_corpus):
    texts, labels = fruit_corpus
    model = MPADClassifier(**QUICK).set_output(transform="pandas").fit(texts, labels)
    frame = model.transform(texts[:3])
    assert frame.shape == (3, 8) and frame.columns.tolist() == model.get_feature_names_out().tolist()
    assert frame.columns[0] == "mpadclassifier0"


def test_verbose_says_how_it_went(fruit_corpus, capsys):
    MPADClassifier(**{**QUICK, "verbose": True, "max_epochs": 2}).fit(*fruit_corpus)
    said = capsys.readouterr().err
    assert "epoch   2/2" in said and "held-out accuracy" in said and "TF-IDF + linear SVM" in said


def test_many_labels_by_name(fruit_corpus):
    texts, labels = fruit_corpus
    tags = [[label, "long"] if len(text.split()) > 8 else [label] for text, label in zip(texts, labels, strict=True)]
    model = MPADClassifier(**QUICK).fit(texts, tags)
    assert model.classes_.tolist() == ["fruit", "long", "tool"] and model.predict(texts).shape == (len(texts), 3)
    frame = pd.DataFrame({name: [int(name in own) for own in tags] for name in ("tool", "fruit", "long")})
    other = MPADClassifier(**QUICK).fit(texts, frame)
    assert other.classes_.tolist() == ["tool", "fruit", "long"], "columns stay in their order"
    assert 0 <= other.score(texts, frame) <= 1
    with pytest.raises(InputError, match="label 'metal' is not among the model's classes"):
        model.score(texts[:1], [["metal"]])
