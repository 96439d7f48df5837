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


def test_what_is_missing_is_said_once(monkeypatch, caplog):
    monkeypatch.delenv("MPAD_NATIVE", raising=False)
    monkeypatch.setattr(native, "library", None)
    monkeypatch.setattr(native, "missing", "no: not built")
    native.report_missing.cache_clear()
    for _ in range(2):
        native.report_missing()
    assert len(caplog.records) == 1 and "no: not built" in caplog.text and "mpad info" in caplog.text
    monkeypatch.setenv("MPAD_NATIVE", "off")
    native.report_missing.cache_clear()
    native.report_missing()
    assert len(caplog.records) == 1


def test_structures_are_as_large_as_the_compiler_makes_them(monkeypatch):
    if native.library is None:
        pytest.skip("the compiled kernels were not built")
    assert native._agrees(native.library)
    wrong = native._structures("struct round { long n; };") | {}
    monkeypatch.setattr(native, "structures", {**native.structures, **wrong})
    assert not native._agrees(native.library)


def test_a_header_is_read_as_c_reads_it():
    made = native._structures("""
        struct inner { const float *x; float y; };
        struct outer { /* a comment */
            const struct inner *many, *others; /* another; with a semicolon */
            struct inner one;
            unsigned long key;
            long a, b;
        };""")
    fields = dict(made["outer"]._fields_)
    assert list(fields) == ["many", "others", "one", "key", "a", "b"] and fields["one"] is made["inner"]
    assert fields["many"] is ctypes.POINTER(made["inner"]) and fields["key"] is ctypes.c_ulong
    packed = native.pack("graph", size=None)
    assert packed.size is None
