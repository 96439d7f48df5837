import os
import subprocess
import sys

import pytest

import mpad


def test_public_names_exist_and_no_others():
    for name in mpad.__all__:
        assert getattr(mpad, name) is not None
    assert dir(mpad) == sorted(mpad.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mpad.nothing  # noqa: B018


def test_graphs_alone_do_not_wait_for_torch():
    code = "import sys; from mpad import graphs_of_words; graphs_of_words(['a b']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("before", "after"), [({}, "2000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "x"}, None)]
)
def test_threads_that_wait_do_not_spin_unless_told(before, after):
    kept = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    code = "import mpad, os; print(os.environ.get('GOMP_SPINCOUNT'))"
    done = subprocess.run([sys.executable, "-c", code], env={**kept, **before}, capture_output=True, text=True)
    assert done.stdout.strip() == str(after)
