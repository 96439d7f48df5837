"""The reader in docs/how-to/onnx.md goes from text to probabilities without mpad, and says what mpad says."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mpad import MPADClassifier

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "onnx.md").read_text()
TEXTS = [
    "the apple fell",
    "x",
    "",
    "It's a (really) BIG saw, isn't it? They'd've had\u00e9 apples \U0001f642!",
    "unappleless saws and the the the drillless thing; appleless xyz \u0130stanbul zzz" * 3,
    *[f"the {word} was on it, saw{number} saws{number}" for number, word in enumerate("apple saw plum drill".split())],
]

pytest.importorskip("onnx", reason="needs mpad[onnx]")
pytest.importorskip("onnxruntime", reason="needs mpad[onnx]")
pytest.importorskip("onnxscript", reason="needs mpad[onnx]")


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    (code,) = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path_factory.mktemp("reader") / "reader.py"
    path.write_text("import sys; sys.modules['mpad'] = sys.modules['torch'] = None  # neither can be imported\n" + code)
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"vectors": None},
        {"preset": "paper", "vectors": None, "tokenizer": "kim-cased"},
        {"window": 4, "directed": False, "weighting": "distance", "vectors": None},
        {"tokenizer": "unicode-punctuation", "vectors": None},
    ],
    ids=["pieces and potentials", "potentials", "case", "edges", "every script"],
)
def test_the_reader_says_what_mpad_says(options, reader, fruit_corpus, static_vectors, tmp_path):
    from mpad.export.onnx_folder import export_onnx

    given = {"vectors": static_vectors, "hidden": 16, "max_epochs": 2, "random_state": 0, "device": "cpu", **options}
    model = MPADClassifier(**given).fit(*fruit_corpus)
    model.save(tmp_path / "model")
    pipeline = export_onnx(tmp_path / "model", tmp_path / "onnx")
    assert pipeline.vocabulary.has_pieces == ("vectors" not in options)
    command = [sys.executable, str(reader), str(tmp_path / "onnx")]
    done = subprocess.run(command, input="\n".join(TEXTS), capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert np.abs(np.array(json.loads(done.stdout)) - model.predict_proba(TEXTS)).max() < 1e-5
