import os
import stat

import numpy as np

from mpad.files.cache import RowCache, cache_folder, make_private
from mpad.training.stream import StreamOptions


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_looks_into_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    os.umask(0o022)
    (tmp_path / "mpad").mkdir(mode=0o755)  # as earlier versions made it
    rows = RowCache(cache_folder() / "states", 4)
    rows.put(["k" * 32], [np.zeros((3, 4))])
    assert mode(tmp_path / "mpad") == mode(tmp_path / "mpad" / "states") == 0o700
    assert all(mode(file) == 0o600 for file in (tmp_path / "mpad" / "states").iterdir())
    make_private(tmp_path / "elsewhere")
    assert mode(tmp_path / "elsewhere") == 0o700


def test_a_folder_may_be_named_by_a_string(tmp_path):
    assert StreamOptions(cache=str(tmp_path)).cache == tmp_path
