import pytest

from mpad.errors import InputError
from mpad.presets import PRESETS, find_preset


def test_the_presets():
    assert set(PRESETS) == {"paper", "authors"}
    assert find_preset("authors").schedule == "halving" and not find_preset("paper").authors
    with pytest.raises(InputError, match="known: paper, authors"):
        find_preset("worst")
