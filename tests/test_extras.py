import pytest

from mpad.errors import MissingExtra
from mpad.extras import require


def test_what_is_there_is_given():
    assert require("json", extra="x").dumps(1) == "1"


def test_what_is_missing_comes_with_its_cure():
    """The cure names packages that an index has, wherever mpad itself was installed from."""
    with pytest.raises(MissingExtra, match=r"'no_such_module' is needed here: pip install 'fastapi>=.*' 'uvicorn>="):
        require("no_such_module", extra="serve")
    with pytest.raises(MissingExtra, match=r"pip install 'matplotlib>=[\d.]+'$"):
        require("no_such_module", extra="plots")
