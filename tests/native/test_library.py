import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from mpad import native

SOURCE = Path(native.__file__).with_name("kernels.c")


@pytest.mark.skipif(native.library is None, reason="the compiled kernels were not built")
def test_a_library_that_was_built_for_another_version_is_not_used():
    assert native.library.mpad_ready(-1) == 0


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler here")
def test_it_compiles_without_a_warning(tmp_path):
    command = ["gcc", "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", str(SOURCE), "-lm"]
    subprocess.run([*command, "-o", str(tmp_path / "kernels.so")], check=True, capture_output=True)
    assert ctypes.CDLL(str(tmp_path / "kernels.so")).mpad_ready(-1) == 0


def test_widths_that_fit():
    assert native.fits(16, 64, 256)
    assert not native.fits(64, 15) and not native.fits(272) and not native.fits(0)
