import pytest

from mpad.errors import MissingExtra
from mpad.extras import require


def test_what_is_there_is_given():
    assert require("json", extra="x").dumps(1) == "1"


def test_what_is_missing_comes_with_its_cure():
    with pytest.raises(MissingExtra, match=r"'no_such_module' is needed here: pip install 'mpad\[serve\]'"):
        require("no_such_module", extra="serve")
