import json
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from mpad import MPADClassifier, inference
from mpad.errors import DamagedModel, InputError, MissingModelFile, ShapeMismatch


@pytest.fixture
def folder(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


def test_a_saved_model_answers_the_same(fitted, folder, fruit_corpus):
    loaded = inference.load(folder)
    texts = [*fruit_corpus[0], "", "words never seen"]
    assert np.abs(loaded.predict_proba(texts) - fitted.predict_proba(texts)).max() < 1e-5
    assert (loaded.predict(texts) == fitted.predict(texts)).all()
    assert loaded.predict_proba([]).shape == (0, 2)


def test_torch_and_scikit_learn_stay_outside(folder):
    code = (
        "import sys; from mpad import inference; "
        f"print(inference.load({str(folder)!r}).predict(['an apple'])); "
        "print([name for name in ('torch', 'sklearn', 'scipy', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_one_string_is_refused(folder):
    with pytest.raises(InputError, match="put it in a list"):
        inference.load(folder).predict("an apple")


def test_damaged_folders_are_told_apart(folder, reseal):
    with pytest.raises(MissingModelFile):
        inference.load(folder / "nothing")
    tensors = load_file(folder / "model.safetensors")
    save_file(
        {name: value for name, value in tensors.items() if name != "classes.weight"}, folder / "model.safetensors"
    )
    with pytest.raises(DamagedModel, match="its checksum differs"):
        inference.load(folder)
    reseal(folder)
    with pytest.raises(DamagedModel, match="classes.weight"):
        inference.load(folder)
    save_file({**tensors, "vectors": tensors["vectors"][:-1]}, folder / "model.safetensors")
    reseal(folder)
    with pytest.raises(ShapeMismatch, match="vectors"):
        inference.load(folder)
    words = json.loads((folder / "vocabulary.json").read_text())
    (folder / "vocabulary.json").write_text(json.dumps(words[:-1]))
    reseal(folder)
    with pytest.raises(ShapeMismatch, match="not of one model"):
        inference.load(folder)


def test_another_tokenizer_can_be_handed_in(folder):
    assert inference.load(folder, tokenizer=str.split).predict(["apple"]).shape == (1,)


def test_a_mapped_model_answers_the_same(fruit_corpus, tmp_path):
    from mpad.files.tensors import is_memory_mapped

    texts, labels = fruit_corpus
    options = {"hidden": 8, "vector_size": 8, "max_epochs": 2, "random_state": 0, "device": "cpu"}
    MPADClassifier(**options).fit(texts, labels).save(tmp_path / "model")
    plain, mapped = (inference.load(tmp_path / "model", memory_mapped=flag) for flag in (False, True))
    assert mapped.potentials is not None and is_memory_mapped(mapped.network.vectors)
    assert is_memory_mapped(mapped.potentials.potential) and is_memory_mapped(mapped.potentials.pairs)
    asked = [*texts[:20], "", "words that nobody has seen"]
    assert np.allclose(mapped.predict_proba(asked), plain.predict_proba(asked), atol=1e-6)
