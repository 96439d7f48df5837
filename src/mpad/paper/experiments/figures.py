"""Records → figures: accuracy by steps, learning curves, and each dataset against the paper."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mpad.extras import require
from mpad.paper.datasets.catalogue import CATALOGUE
from mpad.paper.experiments import paper
from mpad.paper.experiments.records import Record
from mpad.paper.experiments.summary import VARIANTS, Cells, find_cell, summarise

_STEPS = ("mpad-1mp", "mpad", "mpad-3mp", "mpad-4mp")
_BLUE, _ORANGE, _GREY = "#0072b2", "#e69f00", "#999999"  # told apart by colour-blind readers too


def draw(records: Iterable[Record], folder: Path) -> list[Path]:
    """Draw every figure that there are records for."""
    require("matplotlib", extra="plots")
    from matplotlib.figure import Figure

    cells = summarise(records)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    drawings: dict[str, Callable[[Any, Cells], bool]] = {
        "steps-of-messages": _steps,
        "learning-curves": _curves,
        "against-the-paper": _against_paper,
    }
    for name, drawing in drawings.items():
        figure = Figure(layout="constrained", dpi=120)
        if drawing(figure, cells):
            figure.savefig(folder / f"{name}.png")
            written.append(folder / f"{name}.png")
    return written


def _steps(figure: Any, cells: Cells) -> bool:
    """Accuracy against the number of message-passing steps, with 95 % intervals, beside the paper's."""
    result = {name: [find_cell(cells, name, model) for model in _STEPS] for name in paper.TABLE_3_DATASETS}
    complete = {name: [cell for cell in row if cell] for name, row in result.items() if all(row)}
    figure.set_size_inches(3.2 * max(1, len(complete)), 3.2)
    steps = range(1, len(_STEPS) + 1)
    for place, (name, row) in enumerate(complete.items(), start=1):
        axes = figure.add_subplot(1, len(complete), place)
        axes.errorbar(
            steps, [c.mean for c in row], [c.margin for c in row], color=_BLUE, marker="o", capsize=3, label="ours"
        )
        axes.plot(
            steps, [paper.printed(model, name) for model in _STEPS], color=_ORANGE, marker="s", ls="--", label="paper"
        )
        axes.set(title=CATALOGUE[name].title, xlabel="steps of messages", xticks=list(steps))
    if complete:
        figure.axes[0].set_ylabel("test accuracy, %")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), fontsize=8, loc="outside upper right", ncols=2)
    return bool(complete)


def _curves(figure: Any, cells: Cells) -> bool:
    """Validation accuracy by epoch, a line a run, with a dot at the epoch that was kept."""
    shown = {name: cell for name in CATALOGUE if (cell := find_cell(cells, name, "mpad"))}
    for place, (axes, cell) in enumerate(zip(_grid(figure, list(shown), 5, 2.6, 2.4), shown.values(), strict=True)):
        for record in cell.records:
            accuracy = 100 * np.array(record.validation_curve)
            axes.plot(np.arange(1, len(accuracy) + 1), accuracy, color=_BLUE, alpha=0.4, lw=0.8)
            axes.plot(record.best_epoch, accuracy[record.best_epoch - 1], color=_ORANGE, marker="o", ms=3)
        axes.tick_params(labelsize=7)
        if place % 5 == 0:
            axes.set_ylabel("validation accuracy, %", fontsize=8)
        if place >= len(shown) - 5:
            axes.set_xlabel("epoch (dot: kept)", fontsize=8)
    return bool(shown)


def _against_paper(figure: Any, cells: Cells) -> bool:
    """Bars: each variant's accuracy on each dataset, ours with its interval beside the printed one."""
    names = [name for name in paper.TABLE_2_DATASETS if find_cell(cells, name, "mpad")]
    for axes, name in zip(_grid(figure, names, 3, 3.4, 2.6), names, strict=True):
        known = [(model, cell) for model in VARIANTS if (cell := find_cell(cells, name, model))]
        at = np.arange(len(known))
        printed = [float(str(paper.printed(model, name))) for model, _ in known]
        means, margins = [cell.mean for _, cell in known], [cell.margin for _, cell in known]
        axes.bar(at - 0.2, printed, 0.4, color=_GREY, label="paper")
        axes.bar(at + 0.2, means, 0.4, yerr=margins, color=_BLUE, capsize=2, label="ours")
        ends = [*printed, *np.subtract(means, margins), *np.add(means, margins)]
        axes.set_ylim(np.floor(min(ends)) - 1, min(100, np.ceil(max(ends))))
        axes.set_xticks(at, [model.removeprefix("mpad-") for model, _ in known], fontsize=7, rotation=20)
        axes.tick_params(axis="y", labelsize=7)
    if names:
        figure.legend(*figure.axes[0].get_legend_handles_labels(), fontsize=8, loc="outside upper right", ncols=2)
        figure.supylabel("test accuracy, % (axes do not start at 0)", fontsize=8)
    return bool(names)


def _grid(figure: Any, names: list[str], most: int, width: float, height: float) -> Iterator[Any]:
    """Yield axes for each dataset, at most so many in a row, each of this size in inches."""
    columns = min(most, max(1, len(names)))
    rows = -(-len(names) // columns)
    figure.set_size_inches(width * columns, height * max(1, rows))
    for place, name in enumerate(names, start=1):
        axes = figure.add_subplot(rows, columns, place)
        axes.set_title(CATALOGUE[name].title, fontsize=9)
        yield axes
