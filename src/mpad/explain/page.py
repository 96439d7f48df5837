"""Explanation as self-contained HTML without scripts, with light and dark colors for color-blind readers too."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from zlib import crc32

from mpad.explain.explanation import Explanation, WordWeight, display_word
from mpad.explain.graph_svg import graph_style, to_svg
from mpad.explain.layout import (
    FAINT,
    OPPOSES,
    SUPPORTS,
    Drawing,
    draw,
    excerpt_words,
    max_abs,
    scale_weight,
)

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
_MEANING = {
    "gradients": "Contribution of each word to the prediction",
    "occlusion": "Change of the prediction without each word",
    "attention": "Attention of the network",
}
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
        + (f"<h1>{_isolate(str(explanation.label))} <small>{percent}</small></h1>\n" if heading else "")
        + f'<p class="how">{_MEANING[explanation.method]}: {explanation.legend}; '
        f"hover over a word for its weight.{escape(account)}</p>\n"
        f"{_text(explanation, _Marker(explanation, places, drawing, prefix), places)}\n"
        + "".join(f'<p class="how">{escape(note)}</p>\n' for note in notes)
        + f'<div class="columns">\n{_probabilities(explanation)}\n{_edges(explanation)}\n</div>\n'
        + (f"<h2>The graph of words</h2>\n{to_svg(drawing, prefix, master)}\n" if drawing.nodes else "")
        + "</div>"
    )


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
        self._top = max_abs(word.weight for word in explanation.words)
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
            parts += [" … " if hidden else escape(between), self._mark(word)]
            cursor, hidden = word.end, False
        return "".join([*parts, " … " if hidden else escape(self._text[cursor:end])])

    def _mark(self, word: WordWeight) -> str:
        share, node = scale_weight(word.weight, self._top), self._node.get(word.word)
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
    strongest = max_abs(sentence.weight for sentence in sentences)
    with_words = {words[place].sentence for place in places}
    first = [0, *[k for k in range(1, len(words)) if words[k].sentence != words[k - 1].sentence], len(words)]
    start = [0, *[sentence.start for sentence in sentences[1:]], len(explanation.text)]
    paragraphs = [
        f'<p dir="auto">{_sentence_weight(sentence.weight, scale_weight(sentence.weight, strongest))}'
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
    top = max_abs(edge.weight for edge in explanation.edges)
    rows = "".join(
        f"<tr><td><mark{_background(scale_weight(edge.weight, top))}>"
        f'<span dir="ltr">{_isolate(display_word(edge.source))} → '
        f"{_isolate(display_word(edge.target))}</span></mark></td>"
        f'<td class="number">{edge.weight:+.3f}</td></tr>'
        for edge in explanation.top_edges(8)
    )
    return f'<table><tr><th colspan="2">pair of words</th></tr>{rows}</table>'
