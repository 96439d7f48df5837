from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pytest

from mpad.errors import InputError
from mpad.files.safe_json import as_settings


@dataclass(frozen=True)
class Kind:
    n: int
    rate: float = 0.5
    on: bool = False
    how: Literal["a", "b"] = "a"
    widths: Sequence[int] = (1,)
    limit: int | None = None

    def __post_init__(self):
        if self.n < 1:
            raise InputError("n must be at least 1")


def test_values_of_the_right_types_are_taken():
    assert as_settings(Kind, {"n": 2, "rate": 1, "how": "b", "widths": [3, 4], "limit": None}, LookupError).rate == 1


@pytest.mark.parametrize(
    "wrong",
    [
        None, [], {}, {"n": "x"}, {"n": 2.5}, {"n": True}, {"n": None}, {"n": 10**30}, {"n": 0}, {"n": 1, "m": 1},
        {"n": 1, "rate": "x"}, {"n": 1, "rate": float("nan")}, {"n": 1, "rate": float("inf")}, {"n": 1, "on": 1},
        {"n": 1, "how": "c"}, {"n": 1, "how": ["a"]}, {"n": 1, "widths": 3}, {"n": 1, "widths": ["x"]},
        {"n": 1, "widths": [1] * 2000}, {"n": 1, "limit": "x"}, {"n": 1, "how": {}},
    ],
)  # fmt: skip
def test_all_others_are_one_error(wrong):
    with pytest.raises(LookupError):
        as_settings(Kind, wrong, LookupError)
