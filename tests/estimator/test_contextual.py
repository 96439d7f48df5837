"""`features=`: a transformer's states in place of word vectors, from fitting to explaining."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mpad import MPADClassifier, cross_validate
from mpad import inference as runtime
from mpad.ensemble import as_torch
from mpad.errors import InputError, MissingExtra, StoreError
from mpad.evaluate.tuning import Comparison
from mpad.explain.document import trace_document
from mpad.export.int8_folder import export_int8
from mpad.export.onnx_folder import export_onnx
from mpad.server.models import LoadedModel
from mpad.text import contextual

pytest.importorskip("transformers", reason="the extra 'vectors'")
NEW = ["an apple and a zebra saw", "", "the drill stop. on a pear so! x", "pear " * 30]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Nothing is cached outside; tests share what they compute."""
    folder = tmp_path_factory.getbasetemp() / "features"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


def make(folder, **options):
    quick = {"hidden": 8, "batch_size": 16, "max_epochs": 6, "learning_rate": 0.02, "random_state": 0}
    return MPADClassifier(features=folder, device="cpu", **{"dropout": 0.0, **quick, **options})


@pytest.fixture(scope="module")
def fitted(tiny_transformer, fruit_corpus, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "features"))
        return make(tiny_transformer, max_epochs=20).fit(*fruit_corpus)


@pytest.fixture(scope="module")
def folder(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("contextual") / "model"
    fitted.save(path)
    return path


def test_it_learns(fitted, fruit_corpus):
    texts, labels = fruit_corpus
    assert fitted.score(texts, labels) > 0.9 and "tfidf-svm" in fitted.held_out_accuracy_
    probabilities = fitted.predict_proba(NEW)
    assert probabilities.shape == (4, 2) and np.allclose(probabilities.sum(1), 1)
    assert fitted.transform(NEW).shape == (4, 8) and len(fitted.predict([])) == 0
    assert fitted.model_.transformer.name == fitted.features and len(fitted.model_.network.vectors) == 0


@pytest.mark.parametrize("preset", ["best", "paper", "authors"])
@pytest.mark.parametrize("variant", ["mpad", "sentence-att", "clique", "path"])
def test_numpy_and_torch_answer_alike(tiny_transformer, fruit_corpus, preset, variant):
    texts, labels = (part[:60] for part in fruit_corpus)
    model = make(tiny_transformer, preset=preset, variant=variant, max_epochs=2).fit(texts, labels).model_
    packed = model.pack([*NEW, *texts[:5]])
    by_numpy, by_torch = model.network.answer(packed), model.network.answer_by_torch(packed)
    assert np.allclose(by_numpy.logits, by_torch.logits, atol=1e-4)
    assert np.allclose(by_numpy.word_attention, by_torch.word_attention, atol=1e-4)
    alone = np.concatenate([model.logits([text]) for text in NEW])
    assert np.allclose(alone, model.answer(packed).logits[:4], atol=0.02)  # states are rounded to float16


def test_the_network_reads_the_context_of_a_word(fitted):
    """Both documents have the same graph of words; to the transformer they are two texts."""
    first, second = "saw the apple on it", "saw the apple on it ( ) ; : ."
    graphs = fitted.model_.pack([first, second.replace("( )", "")])
    n = len(graphs.words) // 2
    assert np.array_equal(graphs.words[:n], graphs.words[n:])
    assert not np.allclose(graphs.features[:n], graphs.features[n:], atol=0.01)
    logits = fitted.model_.answer(graphs).logits
    assert not np.allclose(logits[0], logits[1], atol=1e-4)


def test_a_saved_model_answers_the_same(fitted, folder):
    config = json.loads((folder / "config.json").read_text())
    assert config["features"] == {"name": fitted.features, "digest": fitted.model_.transformer.digest}
    assert config["network"]["n_words"] == 0 and config["estimator"]["features"] == fitted.features
    expected = fitted.predict_proba(NEW)
    assert np.array_equal(MPADClassifier.load(folder).predict_proba(NEW), expected)
    for pipeline in (runtime.load(folder), runtime.load(folder, memory_mapped=True)):
        assert np.array_equal(pipeline.predict_proba(NEW), expected)
        assert pipeline.predict_proba([]).shape == (0, 2)
        assert np.array_equal(as_torch(pipeline).predict_proba(NEW), expected)
    assert np.allclose(LoadedModel("m", folder).predict(NEW).probabilities, expected)


def test_a_model_without_its_transformer_says_so(folder, monkeypatch, tmp_path, reseal):
    config = json.loads((folder / "config.json").read_text())
    for features, said in (({"digest": "0" * 64}, "install the one"), ({"name": "gone"}, "no features 'gone'")):
        (folder / "config.json").write_text(json.dumps({**config, "features": {**config["features"], **features}}))
        reseal(folder)
        loaded = MPADClassifier.load(folder)  # its transformer is asked for when it is needed
        with pytest.raises((StoreError, InputError), match=said):
            loaded.predict(NEW)
    (folder / "config.json").write_text(json.dumps({**config, "features": {**config["features"], "name": "minilm"}}))
    reseal(folder)
    with monkeypatch.context() as patch:
        contextual._find_folder.cache_clear()
        patch.setattr(contextual, "installed_transformer", lambda: None)
        with pytest.raises(MissingExtra, match="'minilm' is needed here: pip install"):
            runtime.load(folder).predict(NEW)
    without = {name: value for name, value in config.items() if name != "features"}
    for wrong in (without, {**config, "features": {"name": 3, "digest": ""}}, {**config, "features": "minilm"}):
        (folder / "config.json").write_text(json.dumps(wrong))
        reseal(folder)
        with pytest.raises(StoreError):
            runtime.load(folder)
    (folder / "config.json").write_text(json.dumps(config))
    reseal(folder)


@pytest.mark.parametrize("method", ["gradients", "occlusion", "attention"])
@pytest.mark.parametrize("text", [NEW[0], NEW[2], ""])
def test_explanations_of_every_method(fitted, method, text):
    explanation = fitted.explain(text, method=method)
    assert len(explanation.words) == len(fitted.model_.tokenizer.words(text))
    assert explanation.probability == pytest.approx(fitted.predict_proba([text]).max(), abs=1e-3)
    assert all(np.isfinite(word.weight) for word in explanation.words)


def test_weights_add_up(fitted):
    explanation = fitted.explain(NEW[0])
    document = trace_document(fitted.model_, NEW[0])
    faded = replace(document.graphs, features=np.zeros_like(document.graphs.features))
    linear = fitted.model_.potentials
    empty = linear.add_network(fitted.model_.network.answer(faded).logits[0], linear.constant)
    whole = fitted.model_.answer(document.graphs).logits[0]
    column = fitted.classes_.tolist().index(explanation.label)
    grown = (whole[column] - whole[1 - column]) - (empty[column] - empty[1 - column])
    assert not explanation.note
    assert sum(word.weight for word in explanation.words) == pytest.approx(grown, rel=0.05, abs=0.05)


def test_words_taken_out_leave_the_states_of_others_as_they_are(fitted):
    whole, less = trace_document(fitted.model_, NEW[0]), trace_document(fitted.model_, NEW[0], without=[0])
    kept = np.isin(whole.graphs.words, less.graphs.words)
    assert kept.sum() == len(less.graphs.words) == len(whole.graphs.words) - 1
    assert np.array_equal(whole.graphs.features[kept], less.graphs.features)
    twice = trace_document(fitted.model_, "saw the saw")
    versions = twice.build(np.array([[True, True, True], [False, True, True]]))
    assert np.array_equal(versions.features[:2], twice.graphs.features)
    saw = versions.words[2:] == fitted.model_.vocabulary.id("saw")  # of its two states, the second alone
    assert not np.allclose(versions.features[2:][saw], versions.features[:2][saw], atol=1e-3)


def test_words_that_look_like_pieces(tiny_transformer, fruit_corpus):
    """A vocabulary with `##x` in it puts new words together elsewhere; here every node has features of its own."""
    texts, labels = (part[:40] for part in fruit_corpus)
    model = make(tiny_transformer, tokenizer=str.split, max_epochs=2).fit([f"{text} ##x #y" for text in texts], labels)
    packed = model.model_.pack(["##xz new ##x words"])
    assert packed.new_words and len(packed.words) == 4
    network = model.model_.network
    by_numpy, by_torch = network.answer(packed), network.answer_by_torch(packed)
    assert np.allclose(by_numpy.logits, by_torch.logits, atol=1e-4)


def test_members_answer_together(tiny_transformer, fruit_corpus, tmp_path):
    model = make(tiny_transformer, members=2, max_epochs=2).fit(*fruit_corpus)
    probabilities, spread = model.predict_proba(NEW, return_std=True)
    assert spread.shape == probabilities.shape and spread.any()
    model.save(tmp_path / "model")
    assert np.array_equal(MPADClassifier.load(tmp_path / "model").predict_proba(NEW), probabilities)


@pytest.mark.parametrize("preset", ["best", "paper"])
def test_cross_validation_and_held_out_documents(tiny_transformer, fruit_corpus, preset):
    texts, labels = fruit_corpus
    estimator = make(tiny_transformer, preset=preset, max_epochs=8)
    results = cross_validate(estimator, texts, labels, cv=3, watch=False)
    assert len(results) == 3
    for result in results:
        own = [texts[k] for k in result.test]
        assert result.test_accuracy == pytest.approx(
            result.estimator.score(own, np.array(labels)[result.test]), abs=0.03
        )
    fitted = estimator.fit(texts[:90], labels[:90], validation=(texts[90:], labels[90:]))
    assert fitted.card_["held_out"] == 30


def test_training_goes_on(tiny_transformer, fruit_corpus):
    texts, labels = fruit_corpus
    model = make(tiny_transformer, preset="paper", hidden=16, max_epochs=20, warm_start=True).fit(texts, labels)
    first = model.history_[0].train_loss
    assert model.history_[-1].train_loss < 0.5 * first  # the network alone learns from features
    assert model.fit(texts, labels).history_[0].train_loss < 0.9 * first
    model.partial_fit(texts[:20], labels[:20])
    assert len(model.model_.network.vectors) == 0 and model.predict_proba(NEW).shape == (4, 2)
    with pytest.raises(InputError, match="features it began with"):
        model.set_params(features="words", vectors=None).fit(texts, labels)


def test_a_checkpoint_is_gone_on_with(tiny_transformer, fruit_corpus, tmp_path):
    whole = make(tiny_transformer).fit(*fruit_corpus)
    for epochs in (3, 6):
        model = make(tiny_transformer, max_epochs=epochs, preset="paper")
        model.fit(*fruit_corpus, checkpoint=tmp_path / "c", resume=epochs == 6)
    assert model.n_iter_ == whole.n_iter_ == 6


def test_settings_can_be_compared(tiny_transformer, fruit_corpus):
    texts, labels = fruit_corpus
    targets = np.searchsorted(["fruit", "tool"], labels)
    comparison = Comparison(texts, np.array(labels), targets, np.arange(80), np.arange(80, 120))
    settings = make(tiny_transformer).get_params()
    assert comparison.score(settings)[1] > 0.5


def test_what_is_not_there_is_refused(tiny_transformer, folder, fruit_corpus, tmp_path):
    with pytest.raises(InputError, match="stream with features='words'"):
        make(tiny_transformer).fit_stream("nothing.csv")
    with pytest.raises(InputError, match="no features 'bert'"):
        make("bert").fit(*fruit_corpus)
    with pytest.raises(InputError, match="features must be 'words', 'minilm'"):
        make(None).fit(*fruit_corpus)
    with pytest.raises(InputError, match="no word vectors to make smaller"):
        export_int8(folder, tmp_path / "int8")
    pytest.importorskip("onnx")
    with pytest.raises(InputError, match="fit with features='words'"):
        export_onnx(folder, tmp_path / "onnx")
