import json
import subprocess
import sys

import numpy as np
import pytest
from pyarrow import parquet
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from mpad.encoder.encoder import SHIPPED, load_encoder
from mpad.errors import DamagedModel, InputError, StoreError
from mpad.estimator.encoder import MPADEncoder


def test_a_saved_encoder_is_the_same_up_to_its_eight_bits(small_encoder, small_folder, raw_texts):
    loaded = load_encoder(small_folder)
    cosine = (loaded.encode(raw_texts[:50]) * small_encoder.encode(raw_texts[:50])).sum(1)
    assert cosine.min() > 0.99
    assert loaded.card == small_encoder.card and loaded.sizes == small_encoder.sizes | {}


def test_new_words_are_read_by_their_pieces(small_encoder):
    rows = small_encoder.rows(["cat", "Cat", "catcat", "\\?"])
    assert np.array_equal(rows[0], rows[1]) and rows[2].any()
    assert small_encoder.knows("cat") and not small_encoder.knows("catcat")


@pytest.mark.parametrize("damage", ["text", "words", "outputs", "kind", "pieces"])
def test_a_tampered_folder_is_refused(small_folder, tmp_path, reseal, damage):
    import shutil

    folder = tmp_path / "e"
    shutil.copytree(small_folder, folder)
    config = json.loads((folder / "config.json").read_text())
    if damage == "text":
        (folder / "vocabulary.json").write_text("[]")
    else:
        config |= {"words": {"words_seen": 10**6}, "outputs": {"outputs": {"words": 5}}, "kind": {"kind": "cnn"}}.get(
            damage, {}
        )
        (folder / "config.json").write_text(json.dumps(config))
        if damage == "pieces":
            words = json.loads((folder / "vocabulary.json").read_text())
            plain = [word.removeprefix("##") + f"x{k}" for k, word in enumerate(words)]
            (folder / "vocabulary.json").write_text(json.dumps(plain))
        reseal(folder)
    with pytest.raises(StoreError):
        load_encoder(folder)


def test_names_that_are_no_encoder(tmp_path, fitted_flat):
    with pytest.raises(InputError, match="no encoder"):
        load_encoder(tmp_path)
    fitted_flat.save(tmp_path / "model")
    with pytest.raises((StoreError, DamagedModel), match="not an encoder"):
        load_encoder(tmp_path / "model")


def test_the_encoder_that_ships_knows_english():
    size = sum(path.stat().st_size for path in SHIPPED.iterdir())
    assert size <= 16e6 and (SHIPPED / "README.md").is_file()
    model = MPADEncoder()
    texts = ["the kitten drinks milk", "how to file a tax return", "the film was wonderful"]
    assert [place for place, _ in model.nearest("a small cat", texts, top=3)][0] == 0
    assert [place for place, _ in model.nearest("a great movie", texts, top=1)] == [2]


def test_it_is_a_transformer_of_scikit_learn(small_folder, raw_texts):
    model = clone(MPADEncoder(small_folder))
    assert model.fit_transform(raw_texts[:5]).shape == (5, 12) and len(model.get_feature_names_out()) == 12
    labels = ["good" in text for text in raw_texts]
    pipe = make_pipeline(model, LogisticRegression(C=100)).fit(raw_texts, labels)
    assert roc_auc_score(labels, pipe.predict_proba(raw_texts)[:, 1]) > 0.7


def test_it_encodes_as_sentence_transformers_does(small_folder, raw_texts):
    model = MPADEncoder(small_folder)
    one, many = model.encode("the cat"), model.encode(raw_texts[:3], batch_size=2, show_progress_bar=False)
    assert one.shape == (12,) and many.shape == (3, 12) == (3, model.get_sentence_embedding_dimension())
    assert np.allclose(model.similarity(many, many).diagonal(), 1, atol=1e-5)
    assert model.similarity(one, many).shape == (1, 3)
    assert model.encode([]).shape == (0, 12) and model.nearest("x", []) == []
    assert np.isfinite(model.encode(["", "☃"])).all()


def test_the_commands_describe_it_embed_texts_and_find_close_ones(tmp_path):
    def run(*arguments):
        command = [sys.executable, "-m", "mpad", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1_200, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    facts = json.loads(run("info", SHIPPED, "--json"))
    shipped = load_encoder("auto")
    assert facts["model"] == "encoder" and facts["width of a vector"] == shipped.width
    assert len(facts["teachers"]) == len(shipped.outputs)
    (tmp_path / "texts.csv").write_text("text\nthe kitten drinks milk\nhow to file a tax return\n")
    run("embed", "texts.csv", "--out", "vectors.parquet")
    run("embed", "texts.csv", "--out", "vectors.npy")
    table = parquet.read_table(tmp_path / "vectors.parquet")
    assert table.column("text").to_pylist()[0] == "the kitten drinks milk"
    assert np.allclose(np.array(table.column("vector").to_pylist()), np.load(tmp_path / "vectors.npy"), atol=1e-6)
    (row,) = [
        json.loads(line)
        for line in run("embed", "texts.csv", "--query", "a small cat", "--top", 1, "--format", "jsonl").splitlines()
    ]
    assert row["text"] == "the kitten drinks milk"
