"""An explanation in the terminal: words on a background that is stronger the more they weigh."""

import io
from itertools import zip_longest

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from mpad.explain.colour import largest, mixed, strength
from mpad.explain.excerpt import strongest_places
from mpad.explain.explanation import EdgeWeight, Explanation, WordWeight, shown
from mpad.text.printable import printable

_FAINT = 0.08  # weights below this share of the strongest stay uncoloured
_DARK = (24, 24, 27)
_MOST_SENTENCES = 12
_MOST_PARTS = 6  # words, and pairs
_MOST_WORDS = 1_000


def coloured_text(explanation: Explanation) -> Text:
    """The document with its words coloured; of a long one what stands around its strongest words."""
    words = explanation.words
    places, cut = strongest_places(words, _MOST_WORDS)
    whole = Text(_as_long(explanation.text))
    top = largest(word.weight for word in words)
    for word in (words[place] for place in places):
        share = strength(word.weight, top)
        if abs(share) >= _FAINT:
            red, green, blue = mixed(share, _DARK)
            whole.stylize(f"#ffffff on #{red:02x}{green:02x}{blue:02x}", word.start, word.end)
    if not cut:
        return whole
    first = [place for place, before in zip(places, [-2, *places], strict=False) if place != before + 1]
    last = [place for place, after in zip(places, [*places[1:], -2], strict=True) if place + 1 != after]
    runs = [whole[words[a].start : words[b].end] for a, b in zip(first, last, strict=True)]
    return Text(" … ").join(runs).append(f"\n\n{cut}", "dim")


def _as_long(text: str) -> str:
    """Control characters as a mark of one character each, so that words stay where they are."""
    return "".join("�" if character != printable(character) else character for character in text)


def show(explanation: Explanation, console: Console | None = None) -> None:
    """Print label, text and strongest parts."""
    console = console or Console(emoji=False)
    console.print(
        f"[bold]{escape(printable(str(explanation.label)))}[/bold]  probability {explanation.probability:.3f}"
        f"  [dim]by {explanation.method}: {explanation.legend}[/dim]"
    )
    console.print()
    console.print(coloured_text(explanation), soft_wrap=False)
    console.print()
    console.print(_strongest(explanation))
    parts = {"words": len(explanation.words), "pairs": len(explanation.edges)}
    more = [f"{n - _MOST_PARTS:,} more {name}" for name, n in parts.items() if n > _MOST_PARTS]
    if more:
        console.print(f"[dim]and {', '.join(more)}[/dim]", highlight=False)
    if explanation.account:
        console.print(f"\n{explanation.account}", highlight=False)
    if len(explanation.sentences) > 1:
        console.print("\n[bold]sentence[/bold]")
        heaviest = sorted(explanation.sentences, key=lambda one: -abs(one.weight))[:_MOST_SENTENCES]
        for sentence in sorted(heaviest, key=lambda one: one.start):
            said = printable(" ".join(explanation.text[sentence.start : sentence.end].split()))
            console.print(f"{sentence.weight:+8.3f}  {escape(said[:80])}", highlight=False)
        if len(explanation.sentences) > _MOST_SENTENCES:
            rest = len(explanation.sentences) - _MOST_SENTENCES
            console.print(f"[dim]and {rest:,} more sentences, which weigh less[/dim]", highlight=False)
    if explanation.note:
        console.print(f"[dim]{escape(explanation.note)}[/dim]")


def _strongest(explanation: Explanation) -> Table:
    """The words and pairs that weigh most; of a model with a linear part, what that adds of each weight."""
    words, edges = explanation.top_words(_MOST_PARTS), explanation.top_edges(_MOST_PARTS)
    shows_linear = any(word.potential is not None for word in words)
    numbers = ["weight", "linear"] if shows_linear else ["weight"]
    table = Table(box=None, pad_edge=False)
    for heading in ("word", *numbers, "pair of words", *numbers):
        table.add_column(heading, justify="right" if heading in numbers else "left")

    def cells(name: str, part: WordWeight | EdgeWeight) -> list[Text]:
        shown_numbers = [part.weight, part.potential or 0.0][: len(numbers)]
        return [Text(printable(name)), *[Text(f"{number:+.3f}") for number in shown_numbers]]

    left = [cells(explanation.text[word.start : word.end] or word.word, word) for word in words]
    right = [cells(f"{shown(edge.source)} → {shown(edge.target)}", edge) for edge in edges]
    nothing = [Text()] * (1 + len(numbers))
    for one, other in zip_longest(left, right, fillvalue=nothing):
        table.add_row(*one, *other)
    return table


def as_text(explanation: Explanation) -> str:
    """The same without colours, for a file."""
    console = Console(file=io.StringIO(), width=100, color_system=None, emoji=False)
    show(explanation, console)
    return str(console.file.getvalue())  # type: ignore[attr-defined]
