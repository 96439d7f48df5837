"""A data folder of our own for every test."""

import pytest


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MPAD_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "data"
