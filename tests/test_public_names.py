import os
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import mpad

REFERENCE = Path(__file__).parent.parent / "docs" / "reference" / "python.md"


def test_public_names_exist_and_no_others():
    for name in mpad.__all__:
        assert getattr(mpad, name) is not None
    assert dir(mpad) == sorted(mpad.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mpad.nothing  # noqa: B018


def test_names_in_all_exist():
    for module in pkgutil.iter_modules(mpad.__path__, "mpad."):
        if module.name not in ("mpad.__main__", "mpad.runtime"):  # the one runs, the other warns
            own = import_module(module.name)
            assert all(hasattr(own, public) for public in getattr(own, "__all__", ())), module.name


def test_everything_on_the_reference_page_exists():
    documented = re.findall(r"^::: (mpad\.\S+)", REFERENCE.read_text(), re.MULTILINE)
    assert documented
    for name in documented:
        assert pkgutil.resolve_name(name)


def test_documents_name_nothing_private():
    """What people read uses public names; how it is built, and how to change it, is another matter."""
    pages = [REFERENCE.parents[2] / "README.md", *REFERENCE.parents[1].rglob("*.md")]
    own = {"architecture.md", "LOG.md", "security.md"}
    for page in pages:
        if page.name not in own:
            assert not re.findall(r"\bmpad\._\w+", page.read_text()), page


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
