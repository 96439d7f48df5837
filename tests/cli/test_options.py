"""Options that pass parameters on to the library."""

import inspect

import pytest

from mpad import MPADClassifier, StreamOptions
from mpad.cli import compare, demo, fit, predict
from mpad.cli.options import Parameters
from mpad.scale import Predictor

PASSED_ON = {
    "MPADClassifier": MPADClassifier,
    "StreamOptions": StreamOptions,
    "mpad.scale.predictor:Predictor": Predictor,
}
GROUPS = [
    note
    for command in (fit, compare, predict, demo)
    for argument in inspect.signature(command.run.__wrapped__).parameters.values()
    for note in getattr(argument.annotation, "__metadata__", ())
    if isinstance(note, Parameters)
]


@pytest.mark.parametrize("group", GROUPS)
def test_defaults_are_those_of_the_signature(group):
    signature = inspect.signature(PASSED_ON[group.source])
    for option in group.options():
        default = signature.parameters[option.name].default
        assert default == option.default or option.default is None, option.name


def test_an_option_is_read_from_a_docstring():
    (width,) = Parameters("MPADClassifier", "vector_size").options()
    kind, option = width.annotation.__origin__, width.annotation.__metadata__[0]
    assert kind is int and width.default == 100 and option.help == "Width of vectors that are learned or trained on X."
    top, reject_below = Parameters("mpad.scale.predictor:Predictor", "top reject_below").options()
    assert top.annotation.__origin__ == int | None and top.annotation.__metadata__[0].min == 1
    assert (reject_below.annotation.__metadata__[0].min, reject_below.annotation.__metadata__[0].max) == (0, 1)
