"""Explanation as a matplotlib figure, to be saved as SVG, PDF or PNG."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unicodedata import bidirectional

from mpad.explain.explanation import Explanation, display_word
from mpad.explain.layout import (
    FAINT,
    OPPOSES,
    SUPPORTS,
    Drawing,
    draw,
    excerpt_words,
    scale_weights,
)
from mpad.extras import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 7.0  # inches
_LINE = 0.24  # inches
_MAX_WORDS = 250
_SIZE = 9  # points


def to_figure(explanation: Explanation) -> "Figure":
    """Return a figure with the colored text, the probabilities as bars, and the graph of words."""
    figures: Any = require("matplotlib.figure", extra="plots")
    backend: Any = require("matplotlib.backends.backend_agg", extra="plots")
    figure = figures.Figure(figsize=(_WIDTH, 1.0))
    canvas = backend.FigureCanvasAgg(figure)
    places, cut = excerpt_words(explanation.words, _MAX_WORDS)
    lines = _break_lines(explanation, places, figure, canvas.get_renderer())
    drawing = draw(explanation, 40)
    notes = "; ".join(note for note in (explanation.note, cut, drawing.note) if note)
    tall = 3.4 if drawing.nodes else 0.0
    height = 0.9 + _LINE * len(lines) + tall
    figure.set_size_inches(_WIDTH, height)
    _draw_title(figure, explanation, height, notes)
    _draw_text(figure, lines, height)
    if drawing.nodes:
        _draw_graph(figure.add_axes((0.02, 0.01, 0.66, (tall - 0.2) / height)), drawing)
        _draw_bars(figure.add_axes((0.80, 0.25 / height, 0.18, (tall - 0.9) / height)), explanation)
    result: Figure = figure
    return result


def _rgb(share: float) -> tuple[float, float, float]:
    red, green, blue = SUPPORTS if share >= 0 else OPPOSES
    return red / 255, green / 255, blue / 255


@dataclass(frozen=True)
class _Piece:
    """Piece of text without spaces: a word, or punctuation between words."""

    text: str
    share: float  # of the largest weight
    sentence: int
    glued: bool  # no space before it


def _split_text(explanation: Explanation, places: list[int]) -> list[_Piece]:
    """Split the text into pieces, with an ellipsis for hidden words."""
    text, pieces = explanation.text, list[_Piece]()
    shares = scale_weights(word.weight for word in explanation.words)
    cursor, before = 0, -1

    def add_between(end: int, sentence: int) -> None:
        for match in re.finditer(r"\S+", text[cursor:end]):
            glued = match.start() == 0 and bool(pieces)  # a full stop stays with its sentence
            pieces.append(_Piece(match[0], 0.0, pieces[-1].sentence if glued else sentence, glued))

    for place in places:
        word = explanation.words[place]
        if place > before + 1:
            pieces.append(_Piece("…", 0.0, word.sentence, False))
        elif word.start > cursor:
            add_between(word.start, word.sentence)
        glued = word.start > 0 and place == before + 1 and not text[word.start - 1].isspace()
        pieces.append(_Piece(text[word.start : word.end] or word.word, shares[place], word.sentence, glued))
        cursor, before = max(cursor, word.end), place
    last = pieces[-1].sentence if pieces else 0
    if before + 1 < len(explanation.words):
        pieces.append(_Piece("…", 0.0, last, False))
    else:
        add_between(len(text), last)
    return pieces


def _break_lines(
    explanation: Explanation, places: list[int], figure: Any, renderer: Any
) -> list[list[tuple[str, float, float]]]:
    """Return lines of (text, x in inches, share); each sentence starts a line with its weight."""
    lines: list[list[tuple[str, float, float]]] = []
    at, sentence, many = 0.0, -1, len(explanation.sentences) > 1
    right_to_left = _reads_right_to_left(explanation.text)
    for piece in _split_text(explanation, places):
        drawn = figure.text(0, 0, _escape(piece.text), fontsize=_SIZE)
        width = drawn.get_window_extent(renderer).width / figure.dpi
        drawn.remove()
        full = at + width > _WIDTH - 0.4 and not piece.glued  # a full stop stays with its word
        if not lines or (many and piece.sentence != sentence) or full:
            lines.append([])
            if many and piece.sentence != sentence:
                margin = _WIDTH - 0.8 if right_to_left else 0.0
                lines[-1].append((f"{explanation.sentences[piece.sentence].weight:+.2f}", margin, 0.0))
            at, sentence = 0.6 if many else 0.0, piece.sentence
        elif not piece.glued:
            at += 0.06
        lines[-1].append((_escape(piece.text), _WIDTH - 0.4 - at - width if right_to_left else at, piece.share))
        at += width
    return lines


def _reads_right_to_left(text: str) -> bool:
    """Return whether the first letter with a direction is right-to-left, as browsers decide it."""
    return next((kind != "L" for kind in map(bidirectional, text) if kind in ("L", "R", "AL")), False)


def _escape(text: str) -> str:
    return text.replace("$", r"\$")


def _draw_title(figure: Any, explanation: Explanation, height: float, notes: str) -> None:
    title = _escape(f"{explanation.label}  {explanation.probability:.3f}")
    figure.text(0.2 / _WIDTH, 1 - 0.28 / height, title, fontsize=_SIZE + 2, weight="bold")
    how = f"by {explanation.method}: {explanation.legend}{'; ' if notes else ''}{notes}"
    figure.text(0.2 / _WIDTH, 1 - 0.48 / height, how, fontsize=_SIZE - 2, color="0.4")


def _draw_text(figure: Any, lines: list[list[tuple[str, float, float]]], height: float) -> None:
    for number, line in enumerate(lines):
        y = height - 0.78 - _LINE * number
        for piece, at, share in line:
            box = {"facecolor": (*_rgb(share), 0.75 * abs(share)), "edgecolor": "none", "pad": 1.2}
            figure.text(
                (0.2 + at) / _WIDTH, y / height, piece, fontsize=_SIZE, bbox=box if abs(share) > FAINT else None
            )


def _draw_graph(axes: Any, drawing: Drawing) -> None:
    axes.set(xlim=(-0.08, 1.08), ylim=(1.08, -0.06))
    axes.set_axis_off()
    edge_shares = scale_weights(edge.weight for _, _, edge in drawing.edges)
    node_shares = scale_weights(node.weight for node in drawing.nodes)
    most = max((edge.count for _, _, edge in drawing.edges), default=1.0)
    for (a, b, edge), share in zip(drawing.edges, edge_shares, strict=True):
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
    for node, share in zip(drawing.nodes, node_shares, strict=True):
        axes.plot(node.x, node.y, "o", ms=3 + 5 * abs(share), color=_rgb(share), alpha=0.4 + 0.6 * abs(share))
        axes.text(node.x, node.y + 0.035, _escape(display_word(node.word)), fontsize=_SIZE - 2, ha="center", va="top")


def _draw_bars(axes: Any, explanation: Explanation) -> None:
    ranked = sorted(explanation.probabilities.items(), key=lambda item: -item[1])[:6][::-1]
    axes.barh([str(label)[:18] for label, _ in ranked], [p for _, p in ranked], 0.4, color=_rgb(1.0))
    axes.set_xlim(0, 1)
    axes.set_xlabel("probability", fontsize=_SIZE - 2)
    axes.tick_params(labelsize=_SIZE - 2)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
