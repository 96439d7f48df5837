"""A bounded run of the fuzzers; `make fuzz` and `make security` run longer."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="needs the extra 'serve'")

from security.targets import TARGETS

from security import folders, fuzz, outcome

NAMES = pytest.mark.parametrize("name", TARGETS)


@NAMES
def test_what_once_failed_stays_mended(name):
    case = fuzz.cases_of(name)
    for number in range(len([*TARGETS[name].seeds(), *fuzz.corpus_of(name)])):
        assert case(number) in ("accepted", "refused")


@NAMES
def test_changed_inputs(name):
    case = fuzz.cases_of(name)
    for number in range(40 if name == "HTTP bodies" else 300):
        assert case(number) in ("accepted", "refused"), number


@NAMES
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace"))))
def test_any_bytes(name, data):
    assert TARGETS[name].check(data) in (True, False)


@pytest.mark.parametrize("make", [folders.by_accident, folders.on_purpose])
def test_folders(make):
    found = outcome.run("folders", make, 150)
    assert found.clean and found.cases == 150, found.failures


def test_a_broken_promise_is_noticed():
    """The harness itself: crashes, hangs and the end of the process are told apart."""
    found = outcome.run("harness", _broken, 5)
    counts = found.crashes, found.hangs, found.executed, found.silent_changes, found.accepted
    assert counts == (2, 0, 1, 1, 1) and not found.clean


def _broken():
    def case(number):
        if number == 0:
            raise KeyError("x")
        if number == 1:
            import os

            os._exit(9)
        return ("executed: x", "silent change: x", "accepted")[number - 2]

    return case
