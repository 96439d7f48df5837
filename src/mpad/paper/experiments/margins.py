"""Rows beside rows: on how many datasets one is ahead of another, and by how much; how much of print is reproduced."""

from mpad.paper.datasets.catalogue import CATALOGUE
from mpad.paper.experiments import paper
from mpad.paper.experiments.cells import MAIN, TITLES, VARIANTS, Cells, find_cell, largest_printed, markdown_table

_LARGEST = "largest printed number"
_BEST = ("mpad-best-5", "best")
_PAPER = ("mpad", MAIN)
# (row, its preset), and what it is compared with: a row of ours, or what the paper prints.
_PAIRS: tuple[tuple[tuple[str, str], tuple[str, str | None]], ...] = (
    (_BEST, ("tfidf-svm", None)),
    (_BEST, ("linear-stack", None)),
    (_BEST, ("minilm-lr", None)),
    (_BEST, (_LARGEST, None)),
    (("mpad-best", "best"), ("mpad-best-network", "best")),
    (_PAPER, ("mpad-1mp", MAIN)),
    (_PAPER, ("mpad-3mp", MAIN)),
    (_PAPER, ("mpad-4mp", MAIN)),
    (_PAPER, ("mpad-no-master", MAIN)),
)


def margins(cells: Cells) -> str:
    """Differences of mean test accuracies, in points, over the datasets that both rows have."""
    rows = []
    for (model, preset), (other, other_preset) in _PAIRS:
        apart = {}
        for name in (*paper.TABLE_2_DATASETS, "snippets"):
            ours = find_cell(cells, name, model, preset)
            beside = find_cell(cells, name, other, other_preset)
            value = largest_printed(name) if other == _LARGEST else None if beside is None else beside.mean
            if ours is not None and value is not None:
                apart[name] = round(ours.mean - value, 2) + 0.0  # not -0.0
        if apart:
            behind = ", ".join(f"{CATALOGUE[name].title} {value:+.2f}" for name, value in apart.items() if value <= 0)
            ahead = sum(value > 0 for value in apart.values())
            title = TITLES[model] if model != "mpad" else f"MPAD 2MP, `{preset}`"
            figures = [str(len(apart)), str(ahead), f"{min(apart.values()):+.2f}", f"{max(apart.values()):+.2f}"]
            rows.append([f"{title}, above {TITLES.get(other, other)}", *figures, behind])
    header = ["accuracy, points", "datasets", "ahead on", "least", "most", "not ahead on"]
    return markdown_table(header, rows)


def reproduced(cells: Cells) -> str:
    """Of the numbers that Table 2 prints: how many were run, and how far ours are from them, in standard errors."""
    rivals = tuple(row for row in paper.TABLE_2 if row not in VARIANTS)
    groups = [(f"MPAD, `{preset}`", VARIANTS, preset) for preset in (MAIN, "paper")] + [("rivals", rivals, None)]
    rows = []
    for title, models, preset in groups:
        printed, apart = 0, []
        for model in models:
            for name in paper.TABLE_2_DATASETS:
                value, ours = paper.printed(model, name), find_cell(cells, name, model, preset)
                printed += isinstance(value, float)
                if isinstance(value, float) and ours is not None:
                    apart.append(ours.differs(value))
        counts = [len(apart), sum(abs(z) <= 1 for z in apart), sum(abs(z) <= 2 for z in apart)]
        beyond = [sum(z < -2 for z in apart), sum(z > 2 for z in apart)]
        rows.append([title, *[str(count) for count in (printed, *counts, *beyond)]])
    header = ["cells of Table 2", "printed", "run", "within 1", "within 2", "more than 2 below", "more than 2 above"]
    return markdown_table(header, rows) + "\nIn standard errors of ours; Yelp2013's numbers are among the printed.\n"
