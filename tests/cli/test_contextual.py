"""`mpad fit --features`, and every command that reads the model."""

import json

import pytest

pytest.importorskip("transformers", reason="the extra 'vectors'")
from tests.cli.test_cli import data, mpad  # noqa: E402, F401


def test_a_user_fits_predicts_evaluates_and_explains(data, tiny_transformer, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder, columns = tmp_path / "model", ("--text", "what", "--label", "kind")
    options = ("--hidden", 8, "--max-epochs", 8, "--learning-rate", 0.02, "--batch-size", 16)
    done = mpad("fit", data, *columns, "--features", tiny_transformer, "--out", folder, *options)
    assert "held-out accuracy" in done.stderr and "word vectors" not in done.stderr
    said = [
        json.loads(line) for line in mpad("predict", folder, data, "--text", "what", "-f", "jsonl").stdout.splitlines()
    ]
    assert len(said) == 120 and {row["label"] for row in said} == {"fruit", "tool"}
    assert "accuracy" in mpad("evaluate", folder, data, *columns).stdout
    assert "apple" in mpad("explain", folder, "an apple saw").stdout
    assert tiny_transformer in mpad("info", folder).stdout.replace("\n", "")
    refused = mpad("export", folder, "--int8", tmp_path / "small", check=False)
    assert refused.returncode and "its features come from a transformer" in refused.stderr
    unknown = mpad("fit", data, *columns, "--features", "nowhere", "--out", tmp_path / "other", check=False)
    assert unknown.returncode and "no features 'nowhere'" in unknown.stderr and "Traceback" not in unknown.stderr
