"""Tensors of a file: as a copy, or as views of the file itself."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from mpad.errors import DamagedModel, StoreError
from mpad.files import tensors
from mpad.files.tensors import is_memory_mapped, read_tensors

NUMBERS = {
    "half": np.arange(15, dtype=np.float16).reshape(3, 5),
    "single": np.linspace(0, 1, 7, dtype=np.float32),
    "none": np.zeros((0, 4), np.float32),
    "one": np.array(2.5, np.float64),
}
SHAPES = {name: value.shape for name, value in NUMBERS.items()}


def test_views_of_the_file_hold_the_same_numbers_and_cannot_be_written_to(tmp_path):
    save_file(NUMBERS, tmp_path / "file")
    read = read_tensors(tmp_path / "file", SHAPES, memory_mapped=True)
    for name, value in NUMBERS.items():
        assert np.array_equal(read[name], value) and read[name].dtype == value.dtype
    assert is_memory_mapped(read["half"]) and not is_memory_mapped(NUMBERS["half"])
    assert not any(map(is_memory_mapped, read_tensors(tmp_path / "file", SHAPES).values()))
    with pytest.raises(ValueError, match="read-only"):
        read["half"][0, 0] = 1


def test_numbers_that_lie_askew_are_copied(tmp_path):
    header = {"a": ("F16", [3], 0, 6), "b": ("F32", [2], 6, 14)}
    described = {n: {"dtype": d, "shape": s, "data_offsets": [i, j]} for n, (d, s, i, j) in header.items()}
    head = json.dumps(described).encode()
    head += b" " * (-len(head) % 8)
    numbers = np.array([1, 2, 3], "<f2").tobytes() + np.array([4, 5], "<f4").tobytes()
    (tmp_path / "file").write_bytes(len(head).to_bytes(8, "little") + head + numbers)
    read = read_tensors(tmp_path / "file", {"a": (3,), "b": (2,)}, memory_mapped=True)
    assert read["b"].tolist() == [4, 5] and read["b"].flags.aligned and not is_memory_mapped(read["b"])


def test_a_file_that_is_replaced_while_it_is_read_is_noticed(tmp_path, monkeypatch):
    save_file(NUMBERS, tmp_path / "file")
    save_file({**NUMBERS, "half": NUMBERS["half"] + 1}, tmp_path / "other")
    real = tensors._check_names

    def swapping(*arguments):
        (tmp_path / "other").replace(tmp_path / "file")
        real(*arguments)

    monkeypatch.setattr(tensors, "_check_names", swapping)
    with pytest.raises(DamagedModel, match="took its place"):
        read_tensors(tmp_path / "file", SHAPES, memory_mapped=True)


def test_damaged_files_are_refused_alike_read_or_mapped(tmp_path):
    save_file(NUMBERS, tmp_path / "file")
    whole, generator = (tmp_path / "file").read_bytes(), np.random.default_rng(0)
    outcomes = set()
    for case in range(600):
        data = bytearray(whole)
        for place in generator.integers(0, len(data) if case % 2 else 300, generator.integers(1, 4)):
            data[place] = generator.integers(256)
        if case % 5 == 0:
            data = data[: generator.integers(len(data))]
        (tmp_path / "file").write_bytes(data)
        result = []
        for mapped in (False, True):
            try:
                read = read_tensors(tmp_path / "file", SHAPES, memory_mapped=mapped)
                result.append({name: value.tobytes() for name, value in read.items()})
            except StoreError as error:
                result.append(type(error))
        assert result[0] == result[1], case
        outcomes.add(type(result[0]))
    assert outcomes == {dict, type}  # some damage is in the numbers, which only checksums tell
