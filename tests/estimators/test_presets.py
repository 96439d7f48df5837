import pytest

from mpad.errors import InputError
from mpad.estimators.presets import PRESETS, find_preset


def test_the_presets():
    assert set(PRESETS) == {"paper", "authors"}
    assert find_preset("authors").training == {"schedule": "halving"} and find_preset("paper").network == {}
    with pytest.raises(InputError, match="known: paper, authors"):
        find_preset("worst")
