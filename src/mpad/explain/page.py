"""Explanation as self-contained HTML without scripts, with light and dark colors for color-blind readers too."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from zlib import crc32

from mpad.explain.explanation import Explanation, WordWeight, display_word
from mpad.explain.layout import (
    FAINT,
    OPPOSES,
    SUPPORTS,
    Drawing,
    Node,
    draw,
    excerpt_words,
    scale_weights,
)
from mpad.explain.methods import MEANINGS

_STYLE = """
.mpad { --page: #ffffff; --ink: #1f2328; --faint: #59636e; font: 16px/1.7 system-ui, sans-serif; color: var(--ink);
        background: var(--page); max-width: 60rem; margin: 0 auto; padding: 1.2rem 1.6rem; }
.mpad h1 { font-size: 1.15rem; margin: 0 0 .2rem; } .mpad h2 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
.mpad .how { color: var(--faint); font-size: .85rem; margin: 0 0 1rem; }
.mpad .text { margin: 0 0 1.2rem; }
.mpad .text p { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; padding-left: 4.6rem; position: relative; }
.mpad .text p .share { position: absolute; left: 0; width: 4rem; color: var(--faint); font-size: .8rem;
        font-variant-numeric: tabular-nums; }
.mpad .text p .share i { display: block; height: .35em; border-radius: .2em; }
.mpad .text.plain p { padding-left: 0; }
.mpad mark { color: inherit; border-radius: .25em; padding: .1em .12em; background: none; }
.mpad mark.against { text-decoration: underline dotted; text-underline-offset: .2em; }
.mpad mark:target { outline: 2px solid var(--ink); }
.mpad .columns { display: flex; flex-wrap: wrap; align-items: flex-start; gap: 1rem 3rem; }
.mpad table { border-collapse: collapse; font-size: .9rem; }
.mpad th { text-align: left; color: var(--faint); font-weight: 600; padding: 0 1rem .2rem 0; }
.mpad td { padding: 0 1rem .1rem 0; }
.mpad td.number { text-align: right; font-variant-numeric: tabular-nums; }
.mpad .bar { display: inline-block; height: .7em; border-radius: .2em; background: #8b949e; }
@media (prefers-color-scheme: dark) { .mpad { --page: #0d1117; --ink: #e6edf3; --faint: #9198a1; } }
"""
_INDEX_STYLE = (
    "body { font: 15px/1.5 system-ui, sans-serif; color-scheme: light dark; } td { padding: .1rem .8rem 0 0; }"
)
_MAX_CLASSES = 6
_WIDTH, _HEIGHT, _MARGIN = 760, 480, 60
_MAX_STROKE = 4.0  # pixels, added for the edge with the largest count
_MAX_WORDS = 4_000  # shown; of a longer text, those around the strongest words


def to_html(explanation: Explanation, graph: bool = True, master: bool = False) -> str:
    """Return a self-contained page, optionally with the graph of words and its master node."""
    title = escape(f"{explanation.label}: why")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"</head>\n<body>\n{to_fragment(explanation, graph, master)}\n</body>\n</html>\n"
    )


def write_pages(explanations: Iterable[Explanation], folder: Path) -> None:
    """Write a page per explanation, an index page, and all explanations as JSON lines to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    with (folder / "explanations.jsonl").open("w", encoding="utf-8", errors="backslashreplace") as lines:
        for number, explanation in enumerate(explanations, start=1):
            name = f"{number:05d}.html"
            (folder / name).write_text(explanation.to_html(), encoding="utf-8", errors="backslashreplace")
            lines.write(json.dumps(explanation.to_dict()) + "\n")
            label = escape(str(explanation.label))
            excerpt = escape(" ".join(explanation.text.split())[:200])
            cells = f'<a href="{name}">{number}</a>', label, f"{explanation.probability:.3f}", excerpt
            rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    head = f'<head><meta charset="utf-8"><title>explanations</title><style>{_INDEX_STYLE}</style></head>'
    page = f"<!doctype html><html lang='en'>{head}<body><table>{''.join(rows)}</table></body></html>\n"
    (folder / "index.html").write_text(page, encoding="utf-8", errors="backslashreplace")


def to_fragment(explanation: Explanation, graph: bool = True, master: bool = False, heading: bool = True) -> str:
    """Return the part inside <body>, for notebooks; omit the heading on pages that have one."""
    drawing = draw(explanation) if graph else Drawing((), (), 0)
    prefix = f"m{crc32(f'{explanation.label} {explanation.text}'.encode('utf-8', 'surrogatepass')):x}"
    places, cut = excerpt_words(explanation.words, _MAX_WORDS)
    notes = [note for note in (explanation.note, cut, drawing.note) if note]
    percent = f"{_percent(explanation.probability)} probability"
    account = f" {explanation.account[0].upper()}{explanation.account[1:]}." if explanation.account else ""
    return (
        f"<style>{_STYLE}{graph_style()}{_link_style(drawing, prefix)}</style>\n"
        f'<div class="mpad" id="{prefix}">\n'
        + (
            f"<h1>{_isolate(str(explanation.label))}{_against(explanation)} <small>{percent}</small></h1>\n"
            if heading
            else ""
        )
        + f'<p class="how">{MEANINGS[explanation.method]}: {explanation.legend}; '
        f"hover over a word for its weight.{escape(account)}</p>\n"
        f"{_text(explanation, _Marker(explanation, places, drawing, prefix), places)}\n"
        + "".join(f'<p class="how">{escape(note)}</p>\n' for note in notes)
        + f'<div class="columns">\n{_probabilities(explanation)}\n{_edges(explanation)}\n</div>\n'
        + (f"<h2>The graph of words</h2>\n{to_svg(drawing, prefix, master)}\n" if drawing.nodes else "")
        + "</div>"
    )


def _against(explanation: Explanation) -> str:
    return "" if explanation.against is None else f" and not {_isolate(str(explanation.against))}"


def _link_style(drawing: Drawing, prefix: str) -> str:
    """Return CSS that outlines the occurrences of a word while its node has the focus."""
    return "".join(
        f"#{prefix}:has(#{prefix}n{k}:is(:hover, :focus)) .{prefix}{k} {{ outline: 2px solid var(--ink); }}\n"
        for k in range(len(drawing.nodes))
    )


class _Marker:
    """Writer of text with marked words; the first occurrence of each word is the link target of its node."""

    def __init__(self, explanation: Explanation, places: Sequence[int], drawing: Drawing, prefix: str) -> None:
        self._text, self._words, self._prefix = explanation.text, explanation.words, prefix
        self._shares = scale_weights(word.weight for word in explanation.words)
        self._node = {node.word: k for k, node in enumerate(drawing.nodes)}
        self._linked: set[int] = set()
        self._shown = set(places)

    def mark_range(self, first: int, last: int, start: int, end: int) -> str:
        """Return text[start:end], which has the words first … last − 1, with an ellipsis for hidden words."""
        parts: list[str] = []
        cursor, hidden = start, False
        for place in range(first, last):
            word = self._words[place]
            if place not in self._shown:
                hidden, cursor = True, max(cursor, word.end)
                continue
            if word.start < cursor or word.end == word.start:
                continue
            between = self._text[cursor : word.start]
            parts += [" … " if hidden else escape(between), self._mark(word, self._shares[place])]
            cursor, hidden = word.end, False
        return "".join([*parts, " … " if hidden else escape(self._text[cursor:end])])

    def _mark(self, word: WordWeight, share: float) -> str:
        node = self._node.get(word.word)
        names = ["against"] if share <= -FAINT else []
        identity = ""
        if node is not None:
            names.append(f"{self._prefix}{node}")
            if node not in self._linked:
                self._linked.add(node)
                identity = f' id="{self._prefix}w{node}"'
        named = f' class="{" ".join(names)}"' if names else ""
        inside = escape(self._text[word.start : word.end])
        return f'<mark{identity}{named} title="{word.weight:+.4f}"{_background(share)}>{inside}</mark>'


def _text(explanation: Explanation, marker: "_Marker", places: Sequence[int]) -> str:
    """Return one paragraph per sentence, with its weight in the margin; a single sentence has no margin."""
    words, sentences = explanation.words, explanation.sentences
    if len(sentences) < 2:
        inside = marker.mark_range(0, len(words), 0, len(explanation.text))
        return f'<div class="text plain"><p dir="auto">{inside}</p></div>'
    shares = scale_weights(sentence.weight for sentence in sentences)
    with_words = {words[place].sentence for place in places}
    first = [0, *[k for k in range(1, len(words)) if words[k].sentence != words[k - 1].sentence], len(words)]
    start = [0, *[sentence.start for sentence in sentences[1:]], len(explanation.text)]
    paragraphs = [
        f'<p dir="auto">{_sentence_weight(sentence.weight, shares[k])}'
        f"{marker.mark_range(first[k], first[k + 1], start[k], start[k + 1])}</p>"
        for k, sentence in enumerate(sentences)
        if k in with_words
    ]
    return f'<div class="text">{"".join(paragraphs)}</div>'


def _sentence_weight(weight: float, share: float) -> str:
    color = ", ".join(map(str, SUPPORTS if share >= 0 else OPPOSES))
    bar = f'<i style="width: {100 * abs(share):.0f}%; background: rgb({color})"></i>'
    return f'<span class="share" title="weight of the sentence">{weight:+.3f}{bar}</span>'


def _background(share: float) -> str:
    if abs(share) < FAINT:
        return ""
    red, green, blue = SUPPORTS if share > 0 else OPPOSES
    return f' style="background: rgba({red}, {green}, {blue}, {abs(share) * 0.75:.2f})"'


def _isolate(text: str) -> str:
    """Return escaped text whose direction does not affect the text around it."""
    return f"<bdi>{escape(text)}</bdi>"


def _percent(p: float) -> str:
    return "over 99.9 %" if 0.9995 <= p < 1 else f"{100 * p:.1f} %"


def _probabilities(explanation: Explanation) -> str:
    ranked = sorted(explanation.probabilities.items(), key=lambda item: -item[1])
    rows = "".join(
        f'<tr><td>{_isolate(str(label))}</td><td class="number">{_percent(p)}</td>'
        f'<td><span class="bar" style="width: {8 * p:.2f}rem"></span></td></tr>'
        for label, p in ranked[:_MAX_CLASSES]
    )
    return f'<table><tr><th colspan="3">probability</th></tr>{rows}</table>'


def _edges(explanation: Explanation) -> str:
    edges = explanation.top_edges(8)
    rows = "".join(
        f"<tr><td><mark{_background(share)}>"
        f'<span dir="ltr">{_isolate(display_word(edge.source))} → '
        f"{_isolate(display_word(edge.target))}</span></mark></td>"
        f'<td class="number">{edge.weight:+.3f}</td></tr>'
        for edge, share in zip(edges, scale_weights(edge.weight for edge in edges), strict=True)
    )
    return f'<table><tr><th colspan="2">pair of words</th></tr>{rows}</table>'


def to_svg(drawing: Drawing, prefix: str = "", master: bool = False) -> str:
    """Return the graph as one <svg> element.

    A node links to the first occurrence of its word in the text, `#{prefix}w{number}`. With `master`, the master node
    is drawn in the center, linked to every word in both directions.
    """
    if not drawing.nodes:
        return ""
    most = max((edge.count for _, _, edge in drawing.edges), default=1.0)
    parts = [
        f'<svg class="graph" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="graph of {len(drawing.nodes)} words and {len(drawing.edges)} edges">',
        _arrow_heads(prefix),
    ]
    if master:
        parts += [_spoke(node) for node in drawing.nodes]
    both_ways = {(a, b) for a, b, _ in drawing.edges}
    shares = scale_weights(edge.weight for _, _, edge in drawing.edges)
    for (a, b, edge), share in zip(drawing.edges, shares, strict=True):
        parts.append(
            f'<path class="edge {_side(share)}" data-edge="{a} {b}" '
            f'd="{_arc(drawing.nodes[a], drawing.nodes[b], (b, a) in both_ways)}" '
            f'stroke-width="{1.5 + _MAX_STROKE * (edge.count - 1) / most:.1f}" '
            f'stroke-opacity="{0.25 + 0.75 * abs(share):.2f}" '
            f'marker-end="url(#{prefix}{_side(share)})">'
            f"<title>{escape(display_word(edge.source))} → {escape(display_word(edge.target))}: {edge.weight:+.4f}, "
            f"{edge.count:g} times</title></path>"
        )
    shares = scale_weights(node.weight for node in drawing.nodes)
    parts += [_node(drawing.nodes[k], k, share, prefix) for k, share in enumerate(shares)]
    if master:
        x, y = _WIDTH / 2, _HEIGHT / 2
        parts.append(
            f'<g class="node master"><circle cx="{x}" cy="{y}" r="9"/><text x="{x}" y="{y + 24}">master</text></g>'
        )
    return "\n".join([*parts, "</svg>"])


def graph_style() -> str:
    """Return the CSS of the elements of `to_svg`."""
    pro, contra = (f"rgb({', '.join(map(str, color))})" for color in (SUPPORTS, OPPOSES))
    return f"""
.graph {{ width: 100%; max-width: {_WIDTH}px; height: auto; }}
.graph .edge {{ fill: none; stroke: #8b949e; }}
.graph .edge.for {{ stroke: {pro}; }} .graph .edge.against {{ stroke: {contra}; stroke-dasharray: 6 3; }}
.graph marker path {{ fill: #8b949e; }}
.graph .tip-for path {{ fill: {pro}; }} .graph .tip-against path {{ fill: {contra}; }}
.graph .spoke {{ stroke: #8b949e; stroke-opacity: .25; stroke-dasharray: 2 3; }}
.graph .node circle {{ fill: #8b949e; }} .graph .node.for circle {{ fill: {pro}; }}
.graph .node.against circle {{ fill: {contra}; }}
.graph .node text {{ font: 13px system-ui, sans-serif; fill: currentColor; text-anchor: middle; paint-order: stroke;
  stroke: var(--page, #fff); stroke-width: 3px; }}
.graph a:focus circle, .graph a:hover circle {{ stroke: currentColor; stroke-width: 2px; }}
"""


def _side(share: float) -> str:
    return "even" if abs(share) < FAINT else "for" if share > 0 else "against"


def _position(node: Node) -> tuple[float, float]:
    return _MARGIN + node.x * (_WIDTH - 2 * _MARGIN), _MARGIN / 2 + node.y * (_HEIGHT - 1.3 * _MARGIN)


def _node(node: Node, number: int, share: float, prefix: str) -> str:
    x, y = _position(node)
    times = f", {len(node.spans)} times" if len(node.spans) > 1 else ""
    return (
        f'<a class="node {_side(share)}" id="{prefix}n{number}" href="#{prefix}w{number}" data-node="{number}" '
        f'tabindex="0"><title>{escape(display_word(node.word))}: {node.weight:+.4f}{times}</title>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{4 + 7 * abs(share):.1f}" '
        f'fill-opacity="{0.35 + 0.65 * abs(share):.2f}"/>'
        f'<text x="{x:.1f}" y="{y + 20:.1f}">{escape(_shorten(display_word(node.word)))}</text></a>'
    )


def _shorten(word: str, most: int = 24) -> str:
    return word if len(word) <= most else word[: most - 1] + "…"


def _arc(a: Node, b: Node, bent: bool) -> str:
    """Return the path between two nodes, bent if the reverse edge is drawn too."""
    (x1, y1), (x2, y2) = _position(a), _position(b)
    length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1e-6)
    x2, y2 = x2 - 13 * (x2 - x1) / length, y2 - 13 * (y2 - y1) / length
    side = 0.18 if bent else 0.0
    middle = (x1 + x2) / 2 - side * (y2 - y1), (y1 + y2) / 2 + side * (x2 - x1)
    return f"M{x1:.1f} {y1:.1f} Q{middle[0]:.1f} {middle[1]:.1f} {x2:.1f} {y2:.1f}"


def _spoke(node: Node) -> str:
    x, y = _position(node)
    return f'<line class="spoke" x1="{_WIDTH / 2}" y1="{_HEIGHT / 2}" x2="{x:.1f}" y2="{y:.1f}"/>'


def _arrow_heads(prefix: str) -> str:
    heads = "".join(
        f'<marker id="{prefix}{side}" class="tip-{side}" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="9" '
        'markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker>'
        for side in ("for", "against", "even")
    )
    return f"<defs>{heads}</defs>"
