"""An exported model answers in ONNX Runtime what it answers here: every variant, preset and ablation, any batch."""

import json
import random
import re
import unicodedata
from dataclasses import replace

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs mpad[onnx]")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs mpad[onnx]")
pytest.importorskip("onnxscript", reason="needs mpad[onnx]")

from tests.inference.test_network import all_options, random_model, texts  # noqa: E402

from mpad import MPADClassifier, inference  # noqa: E402
from mpad.errors import StoreError  # noqa: E402
from mpad.export import onnx_folder, onnx_model  # noqa: E402
from mpad.export.onnx_folder import export_onnx, onnx_inputs  # noqa: E402
from mpad.export.onnx_model import write_onnx  # noqa: E402
from mpad.graph.build import GraphConfig  # noqa: E402
from mpad.text.tokenizer import as_tokenizer  # noqa: E402

_generator = random.Random(3)
LONG = " ".join(_generator.choice(["the", "w1", "saw", "plums.", f"x{_generator.random()}"]) for _ in range(5_000))
BATCHES = {
    "one word": ["apple"],
    "nothing": [""],
    "nothing among others": ["", "the apple. A saw!", "", "? !"],
    "one long document": [LONG],
    "300 documents": [
        f"the {word} of w{k} was. It is {word} unappleless" for k in range(100) for word in "apple saw x".split()
    ],
}


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def answers(opened, graphs):
    inputs = onnx_inputs(graphs)
    return opened.run(["logits", "probabilities"], {one.name: inputs[one.name] for one in opened.get_inputs()})


def differences(opened, pipeline, given):
    graphs = pipeline.pack(given)
    logits, probabilities = answers(opened, graphs)
    expected = pipeline.answer(graphs).logits
    assert logits.shape == probabilities.shape == expected.shape and np.isfinite(logits).all()
    large = np.abs(expected).max(axis=1, keepdims=True, initial=1)
    return (
        np.abs((logits - expected) / large).max(initial=0),
        np.abs(probabilities - pipeline.labels.probabilities(expected)).max(initial=0),
    )


OPTIONS = [given for k, given in enumerate(all_options()) if given not in list(all_options())[:k]]


# An export takes seconds: every fifth of them has each kind of option, and the others are slow.
@pytest.mark.parametrize(
    ("variant", "options"),
    [pytest.param(*given, marks=[pytest.mark.slow] if k % 5 else []) for k, given in enumerate(OPTIONS)],
)
def test_every_variant_preset_and_ablation_gives_the_same(variant, options, tmp_path):
    pipeline = random_model(variant, **{"hidden": 8, **options})
    write_onnx(pipeline, tmp_path / "model.onnx")
    graph = onnx.load(tmp_path / "model.onnx").graph
    used = {name for node in graph.node for name in node.input}
    assert not {constant.name for constant in graph.initializer} - used
    opened = session(tmp_path / "model.onnx")
    for given in (texts(1), [""], ["w1"]):
        logits, probabilities = differences(opened, pipeline, given)
        assert logits < 1e-5
        assert probabilities < 1e-5 or not options.get("renormalise", True)  # without it, logits are huge


@pytest.fixture(scope="module", params=["mpad", "sentence-att", "clique", "path"])
def best(request, fruit_corpus, static_vectors, tmp_path_factory):
    """A model of the default preset, two members, distilled vectors: new words are put together from pieces."""
    model = MPADClassifier(
        request.param, hidden=16, max_epochs=2, vectors=static_vectors, members=2, random_state=0, device="cpu"
    )
    folder = tmp_path_factory.mktemp("best")
    model.fit(*fruit_corpus).save(folder / "model")
    export_onnx(folder / "model", folder / "onnx")
    return inference.load(folder / "model"), session(folder / "onnx" / "model.onnx")


@pytest.mark.parametrize("batch", BATCHES)
def test_trained_models_with_potentials_members_and_pieces_give_the_same(best, batch):
    pipeline, opened = best
    assert pipeline.potentials is not None and pipeline.vocabulary.has_pieces
    assert max(differences(opened, pipeline, BATCHES[batch])) < 1e-5


def test_new_words_are_put_together(best):
    pipeline, opened = best
    graphs = pipeline.pack(["the appleless saws xyz"])
    assert [len(pieces) for pieces in graphs.new_words] == [2, 2, 0]
    without = replace(graphs, new_words=tuple(() for _ in graphs.new_words))
    assert np.abs(answers(opened, graphs)[0] - answers(opened, without)[0]).max() > 1e-4
    assert max(differences(opened, pipeline, ["the appleless saws xyz"])) < 1e-5


@pytest.mark.parametrize("options", [{"members": 2, "preset": "paper"}, {"window": 4}, {"preset": "authors"}])
def test_other_trained_models_give_the_same(options, fruit_corpus, tmp_path):
    given = {"hidden": 16, "max_epochs": 2, "vectors": None, "random_state": 0, "device": "cpu", **options}
    MPADClassifier(**given).fit(*fruit_corpus).save(tmp_path / "model")
    pipeline = export_onnx(tmp_path / "model", tmp_path / "onnx")
    opened = session(tmp_path / "onnx" / "model.onnx")
    for batch in BATCHES.values():
        assert max(differences(opened, pipeline, batch)) < 1e-5
    estimator = MPADClassifier.load(tmp_path / "model", device="cpu")
    expected = estimator.predict_proba(fruit_corpus[0])
    assert np.abs(answers(opened, pipeline.pack(fruit_corpus[0]))[1] - expected).max() < 1e-5


def test_many_labels_give_the_same(fruit_corpus, tmp_path):
    many = [[label, "long"] if len(text) > 30 else [label] for text, label in zip(*fruit_corpus, strict=True)]
    model = MPADClassifier(hidden=16, max_epochs=2, vectors=None, random_state=0, device="cpu")
    model.fit(fruit_corpus[0], many).save(tmp_path / "model")
    pipeline = export_onnx(tmp_path / "model", tmp_path / "onnx")
    opened = session(tmp_path / "onnx" / "model.onnx")
    assert max(differences(opened, pipeline, fruit_corpus[0])) < 1e-5
    assert opened.get_outputs()[1].shape[1] == 3


def test_distances_as_weights_give_the_same(tmp_path):
    model = random_model("mpad", hidden=8)
    pipeline = replace(model, graph_config=GraphConfig(5, directed=False, weighting="distance"))
    write_onnx(pipeline, tmp_path / "model.onnx")
    assert max(differences(session(tmp_path / "model.onnx"), pipeline, texts(1))) < 1e-5


def test_no_documents_at_all(best):
    pipeline, opened = best
    assert answers(opened, pipeline.pack([]))[0].shape == (0, 2)


def test_many_numbers_stand_in_a_file_of_their_own(fitted_flat, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_model, "_LARGEST", 1_000)
    fitted_flat.save(tmp_path / "model")
    pipeline = export_onnx(tmp_path / "model", tmp_path / "onnx")
    assert (tmp_path / "onnx" / "model.onnx.data").stat().st_size > 10_000
    assert max(differences(session(tmp_path / "onnx" / "model.onnx"), pipeline, ["the apple", ""])) < 1e-5
    export_onnx(tmp_path / "model", tmp_path / "onnx")  # its own folder is replaced


def test_a_folder_of_others_is_left_alone(fitted_flat, tmp_path):
    fitted_flat.save(tmp_path / "model")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "note.txt").write_text("keep")
    with pytest.raises(StoreError, match="is there already"):
        export_onnx(tmp_path / "model", tmp_path / "mine")
    assert (tmp_path / "mine" / "note.txt").read_text() == "keep"


def test_the_rules_say_what_the_inputs_are(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    export_onnx(tmp_path / "model", tmp_path / "onnx")
    rules = json.loads((tmp_path / "onnx" / "preprocessing.json").read_text())
    opened = session(tmp_path / "onnx" / "model.onnx")
    assert list(rules["inputs"]) == [one.name for one in opened.get_inputs()]
    assert rules["labels"]["classes"] == ["fruit", "tool"] and rules["tokenizer"]["name"] == "kim"
    assert (rules["sentence_boundary"] is None) == (fitted.variant == "mpad")


SCRIPTS = [
    "Ça va? L’été, 3.14 naïve!!  ok",
    "東京は good 🙂👍🏽 ไทย",
    "Cafe\u0301 e\u0301te\u0301. हिन्दी। नमस्ते",
    "a\n\nb; c.d e?",
    "",
]


@pytest.mark.parametrize("name", ["unicode", "unicode-punctuation"])
@pytest.mark.parametrize("text", SCRIPTS)
def test_the_rules_of_the_other_tokenizers_and_of_sentences_suffice(text, name):
    """What docs/how-to/onnx.md says of them, done by hand."""
    tokenizer = as_tokenizer(name)
    hierarchical = random_model("path", hidden=8)
    rules = onnx_folder._rules(replace(hierarchical, tokenizer=tokenizer), ["words"])
    own, marked = rules["tokenizer"], re.sub(rules["sentence_boundary"], "\\g<0>\x01", text + "\0")
    letters, sentences = str.maketrans(own["replaced"]), marked.rstrip("\0").split("\x01")
    read = [[word.lower().translate(letters) for word in re.findall(own["pattern"], one)] for one in sentences]
    read = [[unicodedata.normalize(own["form"], word) for word in words] for words in read if words]
    traced = tokenizer.trace(text)
    assert [word for words in read for word in words] == traced.words
    assert [number for number, words in enumerate(read) for _ in words] == traced.sentences


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"max_epochs": 1}], ids=["few labels", "trained further"])
def test_a_model_that_started_from_an_encoder(options, tmp_path):
    reviews = [
        "a wonderful film , i loved it",
        "an awful film , i hated it",
        "great acting",
        "bad acting and plot",
    ] * 10
    model = MPADClassifier(random_state=0, device="cpu", **options).fit(reviews, ["good", "bad"] * 20)
    assert model.encoder_ is not None
    model.save(tmp_path / "model")
    export_onnx(tmp_path / "model", tmp_path / "onnx")
    pipeline = inference.load(tmp_path / "model")
    worst = differences(
        session(tmp_path / "onnx" / "model.onnx"), pipeline, ["not a wonderful film", "unappleless", ""]
    )
    assert max(worst) < 1e-4
