"""Folders with tables of 8 bits: smaller, nearly the same answers, and checked like any other."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from mpad import MPADClassifier
from mpad import inference as runtime
from mpad.errors import DamagedModel, ShapeMismatch, StoreError
from mpad.export.int8_folder import export_int8, quantize
from mpad.storage.model_folder import dequantize


@pytest.fixture(scope="module")
def saved(fruit_corpus, tmp_path_factory):
    """A model of the default preset with nine classes, so that its potentials are wide too."""
    texts, labels = fruit_corpus
    many = [f"{label} {number % 5}" for number, label in enumerate(labels)]
    folder = tmp_path_factory.mktemp("int8") / "model"
    model = MPADClassifier(hidden=16, max_epochs=3, vectors=None, members=2, random_state=0, device="cpu")
    model.fit(texts, many).save(folder)
    return folder


@pytest.fixture
def small(saved, tmp_path):
    assert export_int8(saved, tmp_path / "small") == ["vectors", "potentials.potential"]
    return tmp_path / "small"


def test_a_row_is_off_by_half_a_step_at_most():
    generator = np.random.default_rng(0)
    for kind in (np.float32, np.float16):
        table = (generator.standard_normal((50, 20)) * 10.0 ** generator.integers(-3, 3, (50, 1))).astype(kind)
        table[7] = 0
        numbers, scales = quantize(table)
        assert numbers.dtype == np.int8 and scales.dtype == kind
        back = dequantize(numbers, scales)
        step = np.abs(table.astype(np.float64)).max(1, keepdims=True) / 127
        assert back.dtype == kind and (np.abs(back.astype(np.float64) - table) <= 0.52 * step + 1e-4 * step).all()


def test_both_loaders_read_it_and_answer_nearly_the_same(saved, small, fruit_corpus):
    texts = fruit_corpus[0]
    before = runtime.load(saved).predict_proba(texts)
    after = runtime.load(small).predict_proba(texts)
    assert 0 < np.abs(after - before).max() < 0.05
    assert np.abs(MPADClassifier.load(small, device="cpu").predict_proba(texts) - after).max() < 1e-6
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (saved, small)]
    tables = sum(load_file(saved / "model.safetensors")[name].nbytes for name in ("vectors", "potentials.potential"))
    assert sizes[0] - sizes[1] > 0.4 * tables


def test_saved_again_it_is_an_ordinary_model(small, fruit_corpus, tmp_path):
    model = MPADClassifier.load(small, device="cpu")
    model.save(tmp_path / "again")
    assert "int8" not in json.loads((tmp_path / "again" / "config.json").read_text())
    again = runtime.load(tmp_path / "again").predict_proba(fruit_corpus[0])
    assert np.abs(model.predict_proba(fruit_corpus[0]) - again).max() < 1e-6
    assert export_int8(small, tmp_path / "twice") == ["vectors", "potentials.potential"]


def changed(folder, reseal, **tensors):
    file = folder / "model.safetensors"
    own = {**load_file(file), **tensors}
    save_file({name: value for name, value in own.items() if value is not None}, file)
    reseal(folder)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (
            lambda own: {"vectors": own["vectors"].astype(np.float32)},
            DamagedModel,
            "'vectors' is of type F32, not one of I8",
        ),
        (lambda own: {"vectors.scales": None}, DamagedModel, "'vectors.scales' is missing"),
        (lambda own: {"vectors.scales": own["vectors.scales"][:-1]}, ShapeMismatch, "asks for"),
        (lambda own: {"vectors.scales": own["vectors.scales"] * np.nan}, DamagedModel, "NaN or infinity"),
        (lambda own: {"vectors.scales": np.full_like(own["vectors.scales"], 3e38)}, DamagedModel, "NaN or infinity"),
        (lambda own: {"words.scales": np.zeros(1, np.float32)}, DamagedModel, "unexpected tensors: words.scales"),
    ],
    ids=["type", "missing", "shape", "nan", "overflow", "unexpected"],
)
def test_what_does_not_hold_together_is_refused(change, error, said, small, reseal):
    changed(small, reseal, **change(load_file(small / "model.safetensors")))
    for load in (runtime.load, MPADClassifier.load):
        with pytest.raises(error, match=said):
            load(small)


@pytest.mark.parametrize(
    "tables", ["vectors", ["potentials.idf"], ["vectors", "vectors"], [["vectors"]], {"vectors": 1}, 3]
)
def test_a_configuration_that_names_other_tables_is_refused(tables, small, reseal):
    config = json.loads((small / "config.json").read_text())
    (small / "config.json").write_text(json.dumps({**config, "int8": tables}))
    reseal(small)
    with pytest.raises(DamagedModel, match="'int8': expected some of vectors, potentials.potential"):
        runtime.load(small)


def test_damage_is_noticed(small):
    file = small / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(data)
    with pytest.raises(DamagedModel, match="checksum"):
        runtime.load(small)


def test_other_networks_are_refused(fruit_corpus, tmp_path):
    from mpad.paper import zoo

    zoo.make("dan", max_epochs=1, vector_size=8, vectors=None, random_state=0).fit(*fruit_corpus).save(tmp_path / "dan")
    with pytest.raises(StoreError, match="the model is a 'dan'"):
        export_int8(tmp_path / "dan", tmp_path / "small")


def test_narrow_tables_stay_as_they_are(fitted_flat, tmp_path):
    fitted_flat.save(tmp_path / "model")
    assert load_file(tmp_path / "model" / "model.safetensors")["potentials.potential"].shape[1] == 1
    assert export_int8(tmp_path / "model", tmp_path / "small") == ["vectors"]
