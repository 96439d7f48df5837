"""An explanation as HTML: self-contained, no script, no network; light and dark."""

from html import escape

from mpad.explain.colour import AGAINST, FOR, largest, strength
from mpad.explain.explanation import Explanation

_STYLE = """
.mpad { font: 16px/1.7 system-ui, sans-serif; color: #1f2328; background: #ffffff; max-width: 60rem;
        margin: 0 auto; padding: 1.2rem 1.6rem; }
.mpad h1 { font-size: 1.15rem; margin: 0 0 .2rem; }
.mpad .how { color: #59636e; font-size: .85rem; margin: 0 0 1rem; }
.mpad .text { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 0 1.2rem; }
.mpad mark { color: inherit; border-radius: .25em; padding: .1em .12em; background: none; }
.mpad .columns { display: flex; flex-wrap: wrap; align-items: flex-start; gap: 1rem 3rem; }
.mpad table { border-collapse: collapse; font-size: .9rem; }
.mpad th { text-align: left; color: #59636e; font-weight: 600; padding: 0 1rem .2rem 0; }
.mpad td { padding: 0 1rem .1rem 0; }
.mpad td.number { text-align: right; font-variant-numeric: tabular-nums; }
.mpad .bar { display: inline-block; height: .7em; border-radius: .2em; background: rgb(FOR); }
@media (prefers-color-scheme: dark) {
  .mpad { color: #e6edf3; background: #0d1117; }
  .mpad .how, .mpad th { color: #9198a1; }
}
""".replace("FOR", ", ".join(map(str, FOR)))
_MOST_CLASSES = 6


def to_html(explanation: Explanation) -> str:
    """A whole page."""
    title = escape(f"{explanation.label}: why")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"</head>\n<body>\n{to_fragment(explanation)}\n</body>\n</html>\n"
    )


def to_fragment(explanation: Explanation) -> str:
    """The part inside <body>, for notebooks."""
    note = f'<p class="how">{escape(explanation.note)}</p>' if explanation.note else ""
    return (
        f"<style>{_STYLE}</style>\n"
        '<div class="mpad">\n'
        f"<h1>{escape(str(explanation.label))} <small>{explanation.probability:.3f}</small></h1>\n"
        f'<p class="how">By {explanation.method}: {explanation.legend}; '
        "hover over a word for its weight.</p>\n"
        f'<p class="text" dir="auto">{_marked(explanation)}</p>\n{note}'
        f'<div class="columns">\n{_probabilities(explanation)}\n{_edges(explanation)}\n'
        f"{_sentences(explanation)}\n</div>\n</div>"
    )


def _marked(explanation: Explanation) -> str:
    top = largest(word.weight for word in explanation.words)
    parts, cursor = [], 0
    for word in explanation.words:
        if word.start < cursor or word.end == word.start:
            continue
        parts.append(escape(explanation.text[cursor : word.start]))
        shown = escape(explanation.text[word.start : word.end])
        style = _background(strength(word.weight, top))
        parts.append(f'<mark title="{word.weight:+.4f}"{style}>{shown}</mark>')
        cursor = word.end
    parts.append(escape(explanation.text[cursor:]))
    return "".join(parts)


def _background(share: float) -> str:
    if abs(share) < 0.02:
        return ""
    red, green, blue = FOR if share > 0 else AGAINST
    return f' style="background: rgba({red}, {green}, {blue}, {abs(share) * 0.75:.2f})"'


def _probabilities(explanation: Explanation) -> str:
    ranked = sorted(explanation.probabilities.items(), key=lambda item: -item[1])
    rows = "".join(
        f'<tr><td>{escape(str(label))}</td><td class="number">{p:.3f}</td>'
        f'<td><span class="bar" style="width: {8 * p:.2f}rem"></span></td></tr>'
        for label, p in ranked[:_MOST_CLASSES]
    )
    return f'<table><tr><th colspan="3">probability</th></tr>{rows}</table>'


def _edges(explanation: Explanation) -> str:
    top = largest(edge.weight for edge in explanation.edges)
    rows = "".join(
        f"<tr><td><mark{_background(strength(edge.weight, top))}>"
        f"{escape(edge.source)} → {escape(edge.target)}</mark></td>"
        f'<td class="number">{edge.weight:+.3f}</td></tr>'
        for edge in explanation.top_edges(8)
    )
    return f'<table><tr><th colspan="2">pair of words</th></tr>{rows}</table>'


def _sentences(explanation: Explanation) -> str:
    if len(explanation.sentences) < 2:
        return ""
    top = largest(sentence.weight for sentence in explanation.sentences)
    strongest = sorted(explanation.sentences, key=lambda sentence: -abs(sentence.weight))[:8]
    rows = "".join(
        f"<tr><td><mark{_background(strength(sentence.weight, top))}>"
        f"{escape(_shortened(explanation.text[sentence.start : sentence.end]))}</mark></td>"
        f'<td class="number">{sentence.weight:+.3f}</td></tr>'
        for sentence in strongest
    )
    return f'<table><tr><th colspan="2">sentence</th></tr>{rows}</table>'


def _shortened(text: str, most: int = 90) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
