import pytest

from mpad.errors import InputError
from mpad.estimators.presets import DEFAULT_PRESET, PRESETS, find_preset


def test_the_presets():
    assert set(PRESETS) == {"best", "paper", "authors"} and DEFAULT_PRESET == "best"
    assert find_preset("best").potentials and not find_preset("paper").potentials
    assert find_preset("authors").training == {"schedule": "halving"} and find_preset("paper").network == {}
    with pytest.raises(InputError, match="known: best, paper, authors"):
        find_preset("worst")
