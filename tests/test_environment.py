import json
import os
import subprocess
import sys

import pytest

import mpad
from mpad import native
from mpad.environment import environment


def asked(**variables):
    """What a process of its own says of itself."""
    code = "import json; from mpad.environment import environment; print(json.dumps(environment()))"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_says_which_way_the_numbers_take(capsys):
    facts = environment()
    assert facts["mpad"] == mpad.__version__ and facts["torch"] and "of" in facts["threads"]
    mpad.show_versions()
    printed = capsys.readouterr().out
    assert all(name in printed and said in printed for name, said in facts.items())


@pytest.mark.skipif(native.library is None, reason="the compiled passes were not built")
def test_compiled_code_is_named_by_its_instructions():
    facts = environment()
    assert facts["compiled code, answering"] in ("yes (AVX-512)", "yes (AVX2)", "yes (128-bit vectors)")
    assert facts["compiled code, training"] == "yes"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("off", "no: MPAD_NATIVE=off"),
        ("/nowhere/passes.so", "no: not built, for want of a C compiler"),
        (__file__, "no: built for another machine"),
    ],
)
def test_without_it_the_reason_is_told(value, said):
    facts = asked(MPAD_NATIVE=value)
    assert facts["compiled code, answering"].startswith(said) and facts["compiled code, training"].startswith(said)
