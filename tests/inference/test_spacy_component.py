"""The component of spaCy: categories, batches, and pipelines that are saved with their model."""

import pickle
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

spacy = pytest.importorskip("spacy", reason="needs mpad[spacy]")

from mpad import inference  # noqa: E402
from mpad.errors import DamagedModel, MissingModelFile  # noqa: E402
from mpad.inference.spacy_component import MPADComponent  # noqa: E402

TEXTS = ["the apple was ripe", "a saw and a drill", "", "the plum. A hammer!"]


@pytest.fixture(scope="module")
def folder(fitted_flat, tmp_path_factory):
    path = tmp_path_factory.mktemp("spacy") / "model"
    fitted_flat.save(path)
    return path


@pytest.fixture
def nlp(folder):
    made = spacy.blank("en")
    made.add_pipe("mpad", config={"model": str(folder)})
    return made


def categories(nlp, texts=TEXTS):
    return np.array([[doc.cats["fruit"], doc.cats["tool"]] for doc in nlp.pipe(texts)])


def test_categories_are_the_probabilities(nlp, folder):
    expected = inference.load(folder).predict_proba(TEXTS)
    assert np.allclose(categories(nlp), expected, atol=1e-6)
    doc = nlp(TEXTS[0])
    assert doc.cats["fruit"] > 0.5 > doc.cats["tool"] and sum(doc.cats.values()) == pytest.approx(1)
    assert nlp.get_pipe("mpad").labels == ("fruit", "tool")


def test_documents_are_answered_in_batches(nlp, monkeypatch):
    sizes = []
    answer = inference.Pipeline.predict_proba
    monkeypatch.setattr(
        inference.Pipeline, "predict_proba", lambda own, texts: (sizes.append(len(texts)), answer(own, texts))[1]
    )
    assert [doc.text for doc in nlp.pipe(TEXTS * 5, batch_size=8)] == TEXTS * 5
    assert sizes == [8, 8, 4]


def test_categories_of_others_stay(nlp):
    doc = nlp.make_doc("the apple")
    doc.cats = {"mine": 1.0}
    assert set(nlp.get_pipe("mpad")(doc).cats) == {"mine", "fruit", "tool"}


def test_a_saved_pipeline_has_its_model_with_it(folder, tmp_path):
    moved = tmp_path / "gone"
    moved.mkdir()
    for file in folder.iterdir():
        (moved / file.name).write_bytes(file.read_bytes())
    nlp = spacy.blank("en")
    nlp.add_pipe("mpad", config={"model": str(moved)})
    expected = categories(nlp)
    for file in moved.iterdir():
        file.unlink()
    moved.rmdir()
    nlp.to_disk(tmp_path / "nlp")
    assert np.array_equal(categories(spacy.load(tmp_path / "nlp")), expected)
    again = spacy.blank("en")
    again.add_pipe("mpad")
    assert np.array_equal(categories(again.from_bytes(nlp.to_bytes())), expected)
    assert np.array_equal(categories(pickle.loads(pickle.dumps(nlp))), expected)


def test_a_missing_model_is_said_when_it_is_needed():
    nlp = spacy.blank("en")
    nlp.add_pipe("mpad", config={"model": "/no/such/folder"})
    with pytest.raises(MissingModelFile, match="/no/such/folder: no such folder"):
        nlp("a text")
    with pytest.raises(MissingModelFile, match="no model"):
        MPADComponent("mpad").to_bytes()


def test_what_is_damaged_is_refused(nlp, tmp_path):
    nlp.to_disk(tmp_path / "nlp")
    file = tmp_path / "nlp" / "mpad" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    with pytest.raises(DamagedModel, match="checksum"):
        spacy.load(tmp_path / "nlp")
    import srsly

    for wrong in ([1], {"../x": b"1"}, {"other": b"1"}):
        with pytest.raises(DamagedModel, match="as to_bytes gives them"):
            MPADComponent("mpad").from_bytes(srsly.msgpack_dumps(wrong))


def test_spacy_finds_it_by_itself(folder):
    wanted = "mpad.inference.spacy_component:make_component"
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["spacy_factories"]["mpad"] == wanted
    if wanted not in [point.value for point in entry_points(group="spacy_factories")]:
        pytest.skip("installed before there was an entry point: pip install -e . again")
    code = f"import spacy; nlp = spacy.blank('en'); nlp.add_pipe('mpad', config={{'model': {str(folder)!r}}})"
    code += "; print(max(nlp('the apple').cats.items(), key=lambda pair: pair[1])[0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "fruit", done.stderr


def test_an_empty_component_answers_what_spacy_asks_of_every_component():
    component = MPADComponent("mpad")
    for attribute in ("model", "listeners", "listener_map", "listening_components", "labels", "is_trainable"):
        getattr(component, attribute, None)
