import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from mpad import MPADClassifier
from mpad.errors import DamagedModel, FutureFormat, InputError, MissingModelFile, ShapeMismatch, StoreError


@pytest.fixture
def folder(fitted_flat, tmp_path):
    fitted_flat.save(tmp_path / "model")
    return tmp_path / "model"


def test_saved_and_loaded_models_answer_the_same(fitted, fruit_corpus, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = MPADClassifier.load(tmp_path / "model", device="cpu")
    texts = [*fruit_corpus[0], "", "unseen words here"]
    assert np.allclose(loaded.predict_proba(texts), fitted.predict_proba(texts), atol=1e-6)
    assert loaded.get_params() == fitted.get_params() and loaded.best_epoch_ == fitted.best_epoch_
    assert loaded.explain(texts[0]) == fitted.explain(texts[0])


def test_the_folder_can_be_read(folder):
    assert sorted(file.name for file in folder.iterdir()) == [
        "SHA256SUMS",
        "config.json",
        "model.safetensors",
        "vocabulary.json",
    ]
    config = json.loads((folder / "config.json").read_text())
    assert config["format"] == 8 and config["tokenizer"] == "kim" and config["network"]["variant"] == "mpad"
    assert "apple" in json.loads((folder / "vocabulary.json").read_text())


def test_fixed_vectors_are_kept_in_half_the_space_with_the_same_answers(tmp_path, fruit_corpus):
    texts, labels = fruit_corpus
    words = sorted({word for text in texts for word in text.split()})
    generator = np.random.default_rng(0)
    lines = (f"{word} {' '.join(map(str, generator.normal(size=5)))}\n" for word in words)
    (tmp_path / "v.txt").write_text("".join(lines))
    classifier = MPADClassifier(
        hidden=4, vectors=str(tmp_path / "v.txt"), max_epochs=2, random_state=0, device="cpu"
    ).fit(texts, labels)
    classifier.save(tmp_path / "model")
    assert load_file(tmp_path / "model" / "model.safetensors")["vectors"].dtype == torch.float16
    loaded = MPADClassifier.load(tmp_path / "model", device="cpu")
    assert np.array_equal(loaded.predict_proba(texts), classifier.predict_proba(texts))


def test_saving_again_replaces_and_leaves_nothing_beside(fitted_flat, folder):
    fitted_flat.save(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_other_peoples_folders_are_left_alone(fitted_flat, tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("x")
    with pytest.raises(StoreError, match="is not a model"):
        fitted_flat.save(tmp_path / "letters")
    assert (tmp_path / "letters" / "dear.txt").exists()


def test_no_folder(tmp_path):
    with pytest.raises(MissingModelFile, match="no such folder"):
        MPADClassifier.load(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["config.json", "vocabulary.json", "model.safetensors"])
def test_a_missing_file(folder, name):
    (folder / name).unlink()
    with pytest.raises(MissingModelFile, match=name):
        MPADClassifier.load(folder)


@pytest.mark.parametrize("name", ["config.json", "vocabulary.json", "model.safetensors"])
def test_a_truncated_file(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(DamagedModel, match=name):
        MPADClassifier.load(folder)


def test_a_future_format(folder, reseal):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "format": 99, "mpad": "9.0"}))
    with pytest.raises(FutureFormat, match=r"format 99 by mpad 9.0.*install the newer mpad"):
        MPADClassifier.load(folder)


def test_no_model_at_all(folder):
    (folder / "config.json").write_text("{}")
    with pytest.raises(DamagedModel, match="no mpad model"):
        MPADClassifier.load(folder)


def test_a_shape_that_does_not_fit(folder, reseal):
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, "classes.weight": torch.zeros(7, 7)}, folder / "model.safetensors")
    reseal(folder)
    with pytest.raises(ShapeMismatch, match=r"'classes.weight' has shape \(7, 7\)"):
        MPADClassifier.load(folder)


def test_a_vocabulary_of_another_model(folder, reseal):
    words = json.loads((folder / "vocabulary.json").read_text())
    (folder / "vocabulary.json").write_text(json.dumps(words[:-1]))
    reseal(folder)
    with pytest.raises(ShapeMismatch, match="not of one model"):
        MPADClassifier.load(folder)


@pytest.mark.parametrize("change", ["drop", "nan", "add"])
def test_damaged_tensors(folder, change, reseal):
    tensors = load_file(folder / "model.safetensors")
    if change == "drop":
        del tensors["classes.bias"]
    elif change == "nan":
        tensors["classes.bias"] = tensors["classes.bias"] * float("nan")
    else:
        tensors["extra"] = torch.zeros(1)
    save_file(tensors, folder / "model.safetensors")
    reseal(folder)
    with pytest.raises(DamagedModel, match="extra" if change == "add" else "classes.bias"):
        MPADClassifier.load(folder)


def shout(text):
    return text.upper().split()


def test_own_tokenizers_are_handed_in(tmp_path):
    classifier = MPADClassifier(tokenizer=shout, hidden=4, max_epochs=1, random_state=0).fit(["a", "b"], [0, 1])
    classifier.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["tokenizer"].endswith("test_store:shout")
    with pytest.raises(InputError, match=r"a tokenizer of its own, '.*test_store:shout': hand that in"):
        MPADClassifier.load(tmp_path / "model")
    loaded = MPADClassifier.load(tmp_path / "model", tokenizer=shout)
    assert loaded.predict_proba(["a"]).tolist() == classifier.predict_proba(["a"]).tolist()
    assert loaded.tokenizer is shout


def test_a_nameless_tokenizer_is_no_reason_to_lose_a_model(tmp_path):
    classifier = MPADClassifier(tokenizer=lambda text: text.split(), hidden=4, max_epochs=1).fit(["a", "b"], [0, 1])
    classifier.save(tmp_path / "model")
    assert MPADClassifier.load(tmp_path / "model", tokenizer=str.split).predict(["a"]).shape == (1,)
