import json

import numpy as np
import pytest

from mpad.encoder.teachers import Teacher
from mpad.errors import InputError


@pytest.fixture(scope="module")
def sentence_folder(tiny_transformer):
    """The tiny BERT as a sentence-transformers model."""
    pytest.importorskip("sentence_transformers")
    from pathlib import Path

    folder = Path(tiny_transformer)
    parts = [("0", "", "Transformer"), ("1", "1_Pooling", "Pooling")]
    kinds = [
        {"idx": int(k), "name": k, "path": path, "type": f"sentence_transformers.models.{kind}"}
        for k, path, kind in parts
    ]
    (folder / "modules.json").write_text(json.dumps(kinds))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    pooling = {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


@pytest.mark.filterwarnings("ignore")
def test_vectors_have_length_one_and_are_kept(sentence_folder, tmp_path, monkeypatch):
    teacher = Teacher(sentence_folder, cache=tmp_path)
    first = teacher.vectors(["the apple", "a saw \ud800", ""])
    assert first.shape == (3, 16) == (3, teacher.width)
    assert np.allclose(np.linalg.norm(first.astype(np.float32), axis=1), 1, atol=1e-2)
    again = Teacher(sentence_folder, cache=tmp_path)
    monkeypatch.setattr(Teacher, "encode", None)  # would be called if nothing was kept
    assert np.array_equal(again.vectors(["the apple", "a saw \ud800", ""]), first)
    assert teacher.label == sentence_folder.name


def test_a_folder_that_is_no_teacher(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="modules.json"):
        Teacher(tmp_path)
    with pytest.raises(InputError, match="no teacher"):
        Teacher("nowhere")
