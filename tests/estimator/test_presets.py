import pytest

from mpad.config import DEFAULT_PRESET, PRESETS, find_preset
from mpad.errors import InputError


def test_the_presets():
    assert set(PRESETS) == {"best", "paper", "authors"} and DEFAULT_PRESET == "best"
    assert find_preset("best").potentials and not find_preset("paper").potentials
    assert find_preset("authors").training == {"schedule": "halving"} and find_preset("paper").network == {}
    with pytest.raises(InputError, match="known: best, paper, authors"):
        find_preset("worst")


def test_best_follows_the_number_of_documents():
    best, paper = find_preset("best"), find_preset("paper")
    assert best.training_on(5_000)["max_epochs"] == 15 and best.training_on(5_000)["batch_size"] == 64
    assert best.training_on(200)["batch_size"] == 16
    assert best.training_on(50_000)["max_epochs"] == 8 and best.training_on(10**7)["max_epochs"] == 4
    assert paper.training_on(200) == paper.training_on(10**7) == {}
    assert best.training_on(10_000)["weight_decay"] == 1.0
    assert best.training_on(100_000)["weight_decay"] == pytest.approx(0.1), "as much an epoch as with 10,000"
