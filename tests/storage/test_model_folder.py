"""A folder is data: whoever changes one on purpose gets an error, or another model; nothing else."""

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from mpad import MPADClassifier
from mpad import inference as runtime
from mpad.errors import DamagedModel, InputError, MissingModelFile, MPADError, StoreError
from mpad.paper import zoo
from mpad.storage.model_folder import check_destination, digest
from mpad.storage.model_formats import FORMAT

PROBES = ["an apple a day", "the hammer and the saw", "", "unseen words here. Two sentences!"]


@pytest.fixture
def folder(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def flat_folder(fitted_flat, tmp_path):
    fitted_flat.save(tmp_path / "model")
    return tmp_path / "model"


def both(folder):
    """What both loaders make of a folder: probabilities, or the error."""
    found = []
    for load in (runtime.load, lambda path: MPADClassifier.load(path, device="cpu")):
        try:
            found.append(load(folder).predict_proba(PROBES))
        except MPADError as error:
            found.append(error)
    return found


@pytest.mark.parametrize("name", ["builtins:eval", "os:system", "subprocess:getoutput", "no:such", "kim:x", ""])
def test_a_folder_names_no_code(flat_folder, reseal, name, tmp_path):
    config = json.loads((flat_folder / "config.json").read_text())
    (flat_folder / "config.json").write_text(json.dumps({**config, "tokenizer": name}))
    reseal(flat_folder)
    for load in (runtime.load, MPADClassifier.load, zoo.load):
        with pytest.raises(InputError, match="a tokenizer of its own"):
            load(flat_folder)


def test_the_checksums_are_those_of_everybody(flat_folder):
    checked = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=flat_folder, capture_output=True, text=True)
    assert checked.returncode == 0 and checked.stdout.count(": OK") == 3


def test_every_changed_byte_is_noticed(flat_folder):
    generator = random.Random(0)
    for file in sorted(flat_folder.iterdir()):
        content = file.read_bytes()
        for _ in range(25):
            changed = bytearray(content)
            changed[generator.randrange(len(changed))] ^= 1 << generator.randrange(8)
            file.write_bytes(changed)
            assert all(isinstance(one, StoreError) for one in both(flat_folder)), file.name
        file.write_bytes(content)
    assert np.array_equal(*both(flat_folder))


OLD = Path(__file__).parent / "format-2"


@pytest.mark.parametrize("name", ["paper", "authors-clique"])
@pytest.mark.parametrize("version", [1, 2])
def test_folders_of_earlier_versions_answer_as_they_did(name, version, tmp_path):
    """Written by mpad before format 3; format 1 had no checksums."""
    copied = shutil.copytree(OLD / name, tmp_path / name)
    if version == 1:
        config = json.loads((copied / "config.json").read_text())
        (copied / "SHA256SUMS").unlink()
        with pytest.raises(MissingModelFile, match="SHA256SUMS"):
            runtime.load(copied)
        del config["card"]
        (copied / "config.json").write_text(json.dumps({**config, "format": 1}))
    known = json.loads((OLD / f"{name}.json").read_text())
    for model in (MPADClassifier.load(copied, device="cpu"), runtime.load(copied)):
        assert np.allclose(model.predict_proba(known["texts"]), known["probabilities"], atol=1e-5)
    MPADClassifier.load(copied, device="cpu").save(tmp_path / "again")
    assert json.loads((tmp_path / "again" / "config.json").read_text())["format"] == FORMAT
    assert np.allclose(
        runtime.load(tmp_path / "again").predict_proba(known["texts"]), known["probabilities"], atol=1e-5
    )


def test_resized_tensors_are_refused_by_both_loaders(folder, reseal):
    tensors = load_file(folder / "model.safetensors")
    for name, value in tensors.items():
        shapes = {(1,) * value.ndim, (*value.shape, 1), tuple(2 * n for n in value.shape), value.shape[:-1]}
        for shape in shapes - {value.shape}:
            save_file({**tensors, name: np.ones(shape, value.dtype)}, folder / "model.safetensors")
            reseal(folder)
            assert all(isinstance(one, StoreError) for one in both(folder)), (name, shape)


@pytest.mark.parametrize("kind", [np.int32, np.bool_, np.uint8, np.int64])
def test_other_types_are_refused(flat_folder, reseal, kind):
    tensors = load_file(flat_folder / "model.safetensors")
    for name in ("classes.weight", "vectors"):
        save_file({**tensors, name: tensors[name].astype(kind)}, flat_folder / "model.safetensors")
        reseal(flat_folder)
        assert all(isinstance(one, DamagedModel) for one in both(flat_folder))


ODD = [None, True, -1, 0, 1, 2.5, 1e308, 10**9, 10**30, "x", "", [], {}, [1], {"a": 1}, "kim", "nan"]


def places(value, path=()):
    """Every place of a JSON value."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for number in range(min(len(value), 2)):
            yield from places(value[number], (*path, number))


def put(value, path, odd):
    if not path:
        return odd
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = put(value[path[0]], path[1:], odd)
    return copied


def test_odd_settings_never_end_in_a_traceback(flat_folder, reseal):
    """Each loader refuses, or both answer the same, finite, whatever the configuration says."""
    config = json.loads((flat_folder / "config.json").read_text())
    for path in places(config):
        for odd in ODD:
            (flat_folder / "config.json").write_text(json.dumps(put(config, path, odd)))
            reseal(flat_folder)
            one, other = both(flat_folder)
            assert isinstance(one, MPADError) == isinstance(other, MPADError), (path, odd, one, other)
            if not isinstance(one, MPADError):
                assert np.isfinite(one).all() and np.allclose(one, other, atol=1e-5)


@pytest.mark.parametrize(
    "words",
    [{}, [1], "x", [["a"]], ["a", "a"], ["a\x00b"], ["\x01"], None],
)
def test_odd_vocabularies_are_refused(flat_folder, reseal, words):
    (flat_folder / "vocabulary.json").write_text(json.dumps(words))
    reseal(flat_folder)
    assert all(isinstance(one, StoreError) for one in both(flat_folder))


def test_weights_that_overflow_are_no_answer(flat_folder, reseal):
    tensors = load_file(flat_folder / "model.safetensors")
    save_file(
        {**tensors, "classes.weight": np.full_like(tensors["classes.weight"], 3e38)}, flat_folder / "model.safetensors"
    )
    reseal(flat_folder)
    assert all(isinstance(one, MPADError) for one in both(flat_folder))


@pytest.mark.parametrize("content", ["{}", '{"format": 2}', "[1]", "not json", '{"model_type": "bert", "format": 1}'])
def test_a_config_of_others_is_no_model_of_ours(fitted_flat, tmp_path, content):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "config.json").write_text(content)
    (tmp_path / "p" / "precious").write_text("x")
    with pytest.raises(StoreError, match="is not a model"):
        check_destination(tmp_path / "p")
    with pytest.raises(StoreError):
        fitted_flat.save(tmp_path / "p")
    assert (tmp_path / "p" / "precious").read_text() == "x"


def test_all_files_have_the_mode_that_files_have(flat_folder, tmp_path):
    (tmp_path / "plain").write_text("x")
    usual = (tmp_path / "plain").stat().st_mode
    assert {file.stat().st_mode for file in flat_folder.iterdir()} == {usual}


def test_a_folder_that_is_replaced_while_it_is_read(fitted_flat, tmp_path):
    import threading

    fitted_flat.save(tmp_path / "m")
    expected, stop = runtime.load(tmp_path / "m").predict_proba(PROBES), threading.Event()

    def write():
        while not stop.is_set():
            fitted_flat.save(tmp_path / "m")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(60):
            assert np.array_equal(runtime.load(tmp_path / "m").predict_proba(PROBES), expected)
    finally:
        stop.set()
        writer.join()


def test_rivals_whose_numbers_overflow_give_no_answer(fruit_corpus, tmp_path, reseal):
    zoo.make("tfidf-svm").fit(*fruit_corpus).save(tmp_path / "m")
    tensors = load_file(tmp_path / "m" / "model.safetensors")
    tensors["weight"] = np.full_like(tensors["weight"], np.finfo(tensors["weight"].dtype).max)
    save_file(tensors, tmp_path / "m" / "model.safetensors")
    reseal(tmp_path / "m")
    with pytest.raises(MPADError, match="NaN or infinite"), np.errstate(all="ignore"):
        zoo.load(tmp_path / "m").predict(["a saw and an apple and a drill"])


def test_a_rivals_settings_have_their_ranges(fruit_corpus, tmp_path, reseal):
    zoo.make("cnn", max_epochs=1, vector_size=8, random_state=0, device="cpu").fit(*fruit_corpus).save(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    for value in (-1, 0):
        config["network"]["max_norm"] = value
        (tmp_path / "m" / "config.json").write_text(json.dumps(config))
        reseal(tmp_path / "m")
        with pytest.raises(DamagedModel, match="max_norm must be above 0"):
            zoo.load(tmp_path / "m", "cpu")


def test_a_file_larger_than_its_tensors_is_refused_before_it_is_read(flat_folder, monkeypatch):
    os.truncate(flat_folder / "model.safetensors", 20 << 30)  # sparse: nothing is written

    def read(file):
        if file.name == "model.safetensors":
            raise AssertionError("hashing 20 GB takes minutes")
        return digest(file)

    monkeypatch.setattr("mpad.storage.model_folder.digest", read)
    for error in both(flat_folder):
        assert isinstance(error, MPADError) and "more than its tensors can take" in str(error)
