import numpy as np

from mpad.files.cache import RowCache

KEYS = [f"{k:032d}" for k in range(6)]
ARRAYS = [np.full((k, 4), k, np.float16) for k in range(6)]


def test_rows_come_back_by_their_keys(tmp_path):
    cache = RowCache(tmp_path / "new", 4)
    assert cache.get(KEYS[:2]) == [None, None]
    cache.put(KEYS[:3], ARRAYS[:3])
    cache.put(KEYS[3:5], ARRAYS[3:5])
    for reader in (cache, RowCache(tmp_path / "new", 4)):
        result = reader.get(KEYS)
        assert result[5] is None
        assert all(np.array_equal(own, array) for own, array in zip(result[:5], ARRAYS, strict=False))


def test_files_used_longest_ago_make_place(tmp_path):
    cache = RowCache(tmp_path, 4, most=400)
    large = [np.full((20, 4), k, np.float16) for k in range(3)]  # 160 bytes each, and a header
    cache.put(KEYS[:1], large[:1])
    assert cache.get(KEYS[:1])[0] is not None
    cache.put(KEYS[1:2], large[1:2])
    assert cache.get(KEYS[:2])[0] is None and cache.get(KEYS[1:2])[0] is not None
    assert len(list(tmp_path.iterdir())) == 1


def test_what_is_not_whole_is_passed_over(tmp_path):
    cache = RowCache(tmp_path, 4)
    cache.put(KEYS[1:2], ARRAYS[1:2])
    (tmp_path / "a.safetensors").write_bytes(b"no array")
    cache.put(KEYS[2:3], ARRAYS[2:3])
    whole = next(path for path in tmp_path.iterdir() if path.name != "a.safetensors")
    whole.write_bytes(whole.read_bytes()[:-1])
    there = [own is not None for own in RowCache(tmp_path, 4).get(KEYS[1:3])]
    assert sorted(there) == [False, True]
    assert RowCache(tmp_path, 5).get(KEYS[1:3]) == [None, None]  # of another width


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path):
    (tmp_path / "file").touch()
    cache = RowCache(tmp_path / "file" / "folder", 4)
    cache.put(KEYS[:2], ARRAYS[:2])
    assert cache.get(KEYS[:2]) == [None, None]
