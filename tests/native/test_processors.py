"""The same C on other processors: built by another compiler, and for ARM, run by qemu."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

DRIVER = Path(__file__).with_name("driver.c")
FLAGS = "-O2", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-Wall", "-Wextra", "-Wno-unused-function"
ARM = "aarch64-linux-gnu-gcc", "qemu-aarch64"


def built(compiler, to, *more):
    subprocess.run([compiler, *FLAGS, *more, str(DRIVER), "-o", str(to), "-lm"], check=True, capture_output=True)
    return to


def numbers(*command):
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1200)
    lines = dict(re.findall(r"^([a-z ]+?)((?: [-\d.e+na]+)+)$", done.stdout, re.MULTILINE))
    return {name: np.array(values.split(), float) for name, values in lines.items()}


def needs(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def agree(one, other):
    assert set(one) == set(other) and len(one) > 12
    for name in set(one) - {"lanes"}:
        assert np.isfinite(one[name]).all(), name
        scale = np.abs(one[name]).max().clip(min=1)
        assert np.allclose(one[name] / scale, other[name] / scale, atol=2e-5), name


@needs("gcc", "clang")
def test_clang_computes_what_gcc_computes(tmp_path):
    agree(numbers(str(built("gcc", tmp_path / "gcc"))), numbers(str(built("clang", tmp_path / "clang"))))


@needs("gcc", *ARM)
def test_arm_computes_what_this_machine_computes(tmp_path):
    here = numbers(str(built("gcc", tmp_path / "here")))
    there = numbers(ARM[1], str(built(ARM[0], tmp_path / "there", "-static")))
    assert there["lanes"].tolist() == [4]
    agree(here, there)
