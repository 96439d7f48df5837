"""Packages import only earlier packages of the data flow, and docs/architecture.md lists them all."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from mpad import _HOME

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "mpad"
MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))

# In the order of the data flow: a module imports its own package and the ones before it.
ORDER = """
_version errors extras registry native config files text data graph linear storage inference runtime sequence
dropout network model kernels ensemble training encoder environment export explain estimator evaluate labeling paper
scale server cli __main__
""".split()


def imported(path: Path) -> Iterator[str]:
    """Yield the modules of mpad that a file imports at run time."""
    tree = ast.parse((SOURCE / path).read_text())
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("mpad."))
        elif isinstance(node, ast.ImportFrom) and node.module == "mpad":
            yield from (_HOME.get(alias.name, f"mpad.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mpad."):
            yield node.module


def test_imports_follow_the_data_flow():
    place = {name: number for number, name in enumerate(ORDER)}
    against = [
        f"{path} imports {name}"
        for path in MODULES
        if path.parts != ("__init__.py",)
        for name in imported(path)
        if place[name.split(".")[1]] > place[path.parts[0].removesuffix(".py")]
    ]
    assert not against


def test_every_package_is_in_the_documented_tree():
    tree = re.search(r"```text\nsrc/mpad/\n(.*?)```", (ROOT / "docs" / "architecture.md").read_text(), re.DOTALL)
    assert tree, "docs/architecture.md has a tree"
    packages = {f"{path.parts[0]}/" if len(path.parts) > 1 else path.parts[0] for path in MODULES}
    assert set(re.findall(r"^[├└]── ([\w.]+/?)", tree.group(1), re.MULTILINE)) == packages


def test_no_junk_drawers():
    assert not {path.stem for path in MODULES} & {"utils", "util", "helpers", "common", "misc"}


def test_tests_mirror_the_source():
    packages = {path.parts[0] for path in MODULES if len(path.parts) > 1}
    assert packages <= {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
