"""The cells of tables and figures: lookup, titles, Markdown."""

from collections.abc import Sequence

from mpad.paper.experiments import paper
from mpad.paper.experiments.protocol import BASELINE, words_of
from mpad.paper.experiments.summary import Setting, Summary

Cells = dict[Setting, Summary]
MAIN = "authors"  # the preset of the tables that have room for one
VARIANTS = ("mpad", "mpad-sentence-att", "mpad-clique", "mpad-path")
TITLES = {
    BASELINE: "TF-IDF + linear SVM",
    "mpad": "MPAD",
    **{name: f"MPAD-{name.removeprefix('mpad-')}" for name in VARIANTS[1:]},
    **{f"mpad-{steps}mp": f"MPAD {steps}MP" for steps in (1, 3, 4)},
    "mpad-undirected": "MPAD 2MP undirected",
    "mpad-no-master": "MPAD 2MP no master node",
    "mpad-no-renormalisation": "MPAD 2MP no renormalisation",
    "mpad-neighbours-only": "MPAD 2MP neighbours only",
    "mpad-no-master-skip": "MPAD 2MP no master node skip connection",
    "linear-stack": "linear stack",
    "mpad-best-network": "MPAD, `best`, its network alone",
    "mpad-best": "MPAD, `best`",
    "mpad-best-5": "MPAD, `best`, 5 averaged",
}


def find_cell(cells: Cells, dataset: str, model: str, preset: str | None) -> Summary | None:
    """Return a cell of the main setting: Kim's words, plain folds."""
    return cells.get((dataset, model, preset, words_of(model, "kim"), False))


def largest_printed(dataset: str) -> float | None:
    """Return the largest number that the paper prints for a dataset, of any model."""
    values = [paper.printed(row, dataset) for row in paper.TABLE_2]
    return max((value for value in values if isinstance(value, float)), default=None)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format rows of cells as Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
