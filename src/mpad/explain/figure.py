"""An explanation as a matplotlib figure, for papers: SVG, PDF or PNG by `savefig`."""

from typing import TYPE_CHECKING, Any

from mpad.explain.colour import AGAINST, FOR, largest, strength
from mpad.explain.explanation import Explanation
from mpad.explain.layout import Drawing, draw
from mpad.extras import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 7.0  # inches
_LINE = 0.24
_MOST_WORDS = 250
_SIZE = 9


def to_figure(explanation: Explanation) -> "Figure":
    """Text with coloured words, probabilities as bars, and the graph of words."""
    figures: Any = require("matplotlib.figure", extra="plots")
    backend: Any = require("matplotlib.backends.backend_agg", extra="plots")
    figure = figures.Figure(figsize=(_WIDTH, 1.0))
    canvas = backend.FigureCanvasAgg(figure)
    lines = _lines(explanation, figure, canvas.get_renderer())
    drawing = draw(explanation, 40)
    tall = 3.4 if drawing.nodes else 0.0
    height = 0.9 + _LINE * len(lines) + tall
    figure.set_size_inches(_WIDTH, height)
    _title(figure, explanation, height)
    _write(figure, explanation, lines, height)
    if drawing.nodes:
        _graph(figure.add_axes((0.02, 0.01, 0.66, (tall - 0.2) / height)), drawing)
        _bars(figure.add_axes((0.80, 0.25 / height, 0.18, (tall - 0.9) / height)), explanation)
    found: Figure = figure
    return found


def _rgb(share: float) -> tuple[float, float, float]:
    red, green, blue = FOR if share >= 0 else AGAINST
    return red / 255, green / 255, blue / 255


def _lines(explanation: Explanation, figure: Any, renderer: Any) -> list[list[tuple[str, float, float, float]]]:
    """Words broken into lines: (text, from, width, weight), lengths in inches."""
    lines: list[list[tuple[str, float, float, float]]] = [[]]
    at = 0.0
    for word in explanation.words[:_MOST_WORDS]:
        shown = explanation.text[word.start : word.end].replace("$", r"\$") or word.word
        drawn = figure.text(0, 0, shown, fontsize=_SIZE)
        width = drawn.get_window_extent(renderer).width / figure.dpi
        drawn.remove()
        if at + width > _WIDTH - 0.4 and lines[-1]:
            lines.append([])
            at = 0.0
        lines[-1].append((shown, at, width, word.weight))
        at += width + 0.06
    if len(explanation.words) > _MOST_WORDS:
        lines[-1].append(("…", at, 0.1, 0.0))
    return lines


def _title(figure: Any, explanation: Explanation, height: float) -> None:
    said = f"{explanation.label}  {explanation.probability:.3f}".replace("$", r"\$")
    figure.text(0.2 / _WIDTH, 1 - 0.28 / height, said, fontsize=_SIZE + 2, weight="bold")
    how = f"by {explanation.method}: {explanation.legend}"
    figure.text(0.2 / _WIDTH, 1 - 0.48 / height, how, fontsize=_SIZE - 2, color="0.4")


def _write(figure: Any, explanation: Explanation, lines: list[Any], height: float) -> None:
    top = largest(word.weight for word in explanation.words)
    for number, line in enumerate(lines):
        y = height - 0.78 - _LINE * number
        for shown, at, _, weight in line:
            share = strength(weight, top)
            box = {"facecolor": (*_rgb(share), 0.75 * abs(share)), "edgecolor": "none", "pad": 1.2}
            figure.text((0.2 + at) / _WIDTH, y / height, shown, fontsize=_SIZE, bbox=box if abs(share) > 0.02 else None)


def _graph(axes: Any, drawing: Drawing) -> None:
    axes.set(xlim=(-0.08, 1.08), ylim=(1.08, -0.06))
    axes.set_axis_off()
    top_edge = largest(edge.weight for _, _, edge in drawing.edges)
    top_node = largest(node.weight for node in drawing.nodes)
    most = max((edge.count for _, _, edge in drawing.edges), default=1.0)
    for a, b, edge in drawing.edges:
        share = strength(edge.weight, top_edge)
        one, other = drawing.nodes[a], drawing.nodes[b]
        style = {
            "arrowstyle": "-|>",
            "color": _rgb(share),
            "alpha": 0.25 + 0.75 * abs(share),
            "shrinkA": 4,
            "shrinkB": 5,
        }
        style |= {"lw": max(0.6, 2.5 * edge.count / most), "ls": "-" if share >= 0 else "--"}
        axes.annotate("", (other.x, other.y), (one.x, one.y), arrowprops={**style, "connectionstyle": "arc3,rad=0.12"})
    for node in drawing.nodes:
        share = strength(node.weight, top_node)
        axes.plot(node.x, node.y, "o", ms=3 + 5 * abs(share), color=_rgb(share), alpha=0.4 + 0.6 * abs(share))
        axes.text(node.x, node.y + 0.035, node.word.replace("$", r"\$"), fontsize=_SIZE - 2, ha="center", va="top")


def _bars(axes: Any, explanation: Explanation) -> None:
    ranked = sorted(explanation.probabilities.items(), key=lambda item: -item[1])[:6][::-1]
    axes.barh([str(label)[:18] for label, _ in ranked], [p for _, p in ranked], 0.4, color=_rgb(1.0))
    axes.set_xlim(0, 1)
    axes.set_xlabel("probability", fontsize=_SIZE - 2)
    axes.tick_params(labelsize=_SIZE - 2)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
