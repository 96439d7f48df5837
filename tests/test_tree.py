"""The tree reads like the data flow, and the picture of it in docs/architecture.md is true."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

from mpad import _HOME

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "mpad"
MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))

# Stages from the top of the flow to the bottom; a module imports only its own stage and those above.
STAGES = [
    ["_version", "errors", "_extras", "_native"],
    ["registry"],
    ["_io"],
    ["_text"],
    ["graph"],
    ["sequence"],
    ["ops"],
    ["nn"],
    ["models"],
    ["_columns", "_labels", "_inputs"],
    ["_inspection"],
    ["_storage"],
    ["runtime"],
    ["export", "_spacy_component"],
    ["_training"],
    ["_environment"],
    ["_pipeline"],
    ["_streaming"],
    ["explain"],
    ["estimators"],
    ["_baselines"],
    ["zoo"],
    ["scale"],
    ["_server"],
    ["datasets"],
    ["_experiments"],
    ["_cli"],
    ["__main__"],
]
LEVEL = {name: level for level, names in enumerate(STAGES) for name in names}


def imported(path: Path) -> set[str]:
    tree = ast.parse((SOURCE / path).read_text())
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "mpad":  # from mpad import _native, MPADClassifier
            names |= {_HOME.get(alias.name, f"mpad.{alias.name}") for alias in node.names}
    return {name for name in names if name.startswith("mpad.")}


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.name != "__init__.py" or len(path.parts) > 1], ids=str
)
def test_imports_point_upwards(path):
    own = path.parts[0].removesuffix(".py")
    for name in imported(path):
        assert LEVEL[name.split(".")[1]] <= LEVEL[own], f"{path} imports {name}, which is below it"


def test_every_module_is_named_in_the_tree():
    tree = re.search(r"```text\nsrc/mpad/\n(.*?)```", (ROOT / "docs" / "architecture.md").read_text(), re.DOTALL)
    assert tree, "docs/architecture.md has a tree"
    named = set(re.findall(r"(\w+)\.py", tree.group(1)))
    assert named == {path.stem for path in MODULES if path.stem != "__init__" or len(path.parts) == 1}


def test_every_package_is_named_in_the_tree():
    tree = re.search(r"```text\nsrc/mpad/\n(.*?)```", (ROOT / "docs" / "architecture.md").read_text(), re.DOTALL)
    assert tree and {path.parts[0] for path in MODULES if len(path.parts) > 1} <= set(
        re.findall(r"(\w+)/", tree.group(1))
    )


def test_no_junk_drawers():
    assert not {path.stem for path in MODULES} & {"utils", "util", "helpers", "common", "misc"}


def test_no_private_dialect():
    """Names that a stranger would have to ask about."""
    private = {"found", "hear", "heard", "told", "room", "slab", "planned", "door", "rival"}
    for path in MODULES:
        tokens = tokenize.generate_tokens(io.StringIO((SOURCE / path).read_text()).readline)
        names = {token.string for token in tokens if token.type == tokenize.NAME}
        assert not names & private, f"{path}: {names & private}"


def test_tests_mirror_the_source():
    """Every package of the source has its folder of tests."""
    packages = {path.parts[0].removeprefix("_") for path in MODULES if len(path.parts) > 1}
    assert packages <= {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
