"""What `python -m build` gives installs in a clean environment, and works there."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mpad

ROOT = Path(__file__).parent.parent
SMOKE = """
from importlib.resources import files
from mpad import MPADClassifier, __version__, show_versions
texts, labels = ["a ripe plum", "the drill"] * 20, ["fruit", "tool"] * 20
model = MPADClassifier(max_epochs=3, vectors=None, random_state=0).fit(texts, labels)
model.save("m")
assert MPADClassifier.load("m").predict(["plum"]) == ["fruit"]
assert files("mpad").joinpath("server/static/index.html").is_file()
print(__version__)
"""


def test_files_that_are_no_modules_are_packaged():
    """A checkout finds them all the same, so that only an installed package would miss one."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["mpad"]
    source = ROOT / "src" / "mpad"
    packaged = {file for pattern in named for file in source.glob(pattern)}
    assert all(list(source.glob(pattern)) for pattern in named)
    kinds = {".py", ".pyc", ".c", ".h", ".so"}
    assert {file for file in source.rglob("*") if file.is_file() and file.suffix not in kinds} <= packaged
    assert source / "native" / "abi.h" in packaged


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_it_builds_installs_and_works(kind, tmp_path):
    def run(*command, **options):
        done = subprocess.run([str(one) for one in command], capture_output=True, text=True, cwd=tmp_path, **options)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout

    run(sys.executable, "-m", "venv", tmp_path / "venv")
    pip = [tmp_path / "venv" / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "build")
    run(tmp_path / "venv" / "bin" / "python", "-m", "build", f"--{kind}", "--outdir", tmp_path / "dist", ROOT)
    (made,) = (tmp_path / "dist").iterdir()
    run(*pip, "--no-compile", "-c", ROOT / "constraints.txt", made)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    said = run(tmp_path / "venv" / "bin" / "python", "-c", SMOKE, env={**clean, "MPAD_AUTO_VECTORS": "none"})
    assert said.split() == [mpad.__version__]
    assert "Usage" in run(tmp_path / "venv" / "bin" / "mpad", "--help", env=clean)
