import json

from mpad.cli.output import as_json


def test_what_is_not_finite_is_null():
    assert json.loads(as_json({"a": float("inf"), "b": [float("nan"), 1.5]})) == {"a": None, "b": [None, 1.5]}
