"""The notebooks in examples/ run without a word on stderr, and print what is stored in them, numbers aside."""

import os
import re
from pathlib import Path

import pytest

from mpad.text.distilled import auto_source, piece_vectors

nbformat = pytest.importorskip("nbformat", reason="nbformat is needed to read the notebooks: pip install '.[dev]'")
nbclient = pytest.importorskip("nbclient", reason="nbclient is needed to run the notebooks: pip install '.[dev]'")
pytest.importorskip("ipykernel", reason="ipykernel is needed to run the notebooks: pip install '.[dev]'")
for module in ("pandas", "matplotlib", "networkx", "model2vec"):
    pytest.importorskip(module, reason=f"{module} is needed by the notebooks: pip install '.[dev]'")

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*")


def read(path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell, name="stdout"):
    return "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == name)


def masked(text):
    """Text with its numbers as one mark: they differ in their last digits, and so in their width, by machine."""
    return re.sub(r" +", " ", NUMBER.sub("0", text))


def shown(cell):
    """The kinds of what a cell shows beside text, in their order: tables and explanations, figures."""
    rich = [output for output in cell.outputs if output.output_type in ("display_data", "execute_result")]
    return [sorted(output.data) for output in rich]


@pytest.fixture(scope="module")
def environment():
    """As a reader has it: with the word vectors that "auto" stands for, distilled before anybody looks at stderr."""
    patch = pytest.MonkeyPatch()
    for name in ("MPAD_AUTO_VECTORS", "TRITON_INTERPRET"):  # set for other tests
        patch.delenv(name, raising=False)
    source = auto_source()
    if source is not None:
        piece_vectors(source)
    yield dict(os.environ)
    patch.undo()


def test_there_are_notebooks_and_a_line_for_each():
    lines = (EXAMPLES / "README.md").read_text()
    assert len(NOTEBOOKS) == 4
    assert all(f"({path.name})" in lines for path in NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_stored_is_whole_and_clean(path):
    text = path.read_text()
    assert "/home/" not in text and "/tmp/" not in text and "site-packages" not in text
    for number, cell in enumerate(code_cells(read(path)), 1):
        assert cell.execution_count == number and not cell.metadata
        assert not printed(cell, "stderr")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_prints_what_is_stored(path, tmp_path, environment):
    stored, fresh = read(path), read(path)
    client = nbclient.NotebookClient(
        fresh, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute(env=environment)  # a cell that raises ends the test here
    for before, after in zip(code_cells(stored), code_cells(fresh), strict=True):
        assert printed(after, "stderr") == "", f"{path.name}: {before.id} warns"
        assert masked(printed(after)) == masked(printed(before)), f"{path.name}: {before.id} prints something else"
        assert shown(after) == shown(before), f"{path.name}: {before.id} shows something else"
