"""Explanation in the terminal, with words on a background colored by weight."""

import io
from itertools import zip_longest

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from mpad.explain.explanation import EdgeWeight, Explanation, WordWeight, display_word
from mpad.explain.layout import blend_color, excerpt_words, scale_weights
from mpad.text.printable import printable

_FAINT = 0.08  # weights below this share of the strongest stay uncolored
_DARK = (24, 24, 27)
_MAX_SENTENCES = 12
_MAX_PARTS = 6  # words, and as many pairs
_MAX_WORDS = 1_000


def colored_text(explanation: Explanation) -> Text:
    """Return the document with colored words; of a long one, the context of its strongest words."""
    words = explanation.words
    places, cut = excerpt_words(words, _MAX_WORDS)
    whole = Text(_mask_control(explanation.text))
    shares = scale_weights(word.weight for word in words)
    for word, share in ((words[place], shares[place]) for place in places):
        if abs(share) >= _FAINT:
            red, green, blue = blend_color(share, _DARK)
            whole.stylize(f"#ffffff on #{red:02x}{green:02x}{blue:02x}", word.start, word.end)
    if not cut:
        return whole
    first = [place for place, before in zip(places, [-2, *places], strict=False) if place != before + 1]
    last = [place for place, after in zip(places, [*places[1:], -2], strict=True) if place + 1 != after]
    runs = [whole[words[a].start : words[b].end] for a, b in zip(first, last, strict=True)]
    return Text(" … ").join(runs).append(f"\n\n{cut}", "dim")


def _mask_control(text: str) -> str:
    """Replace each control character by one character, so that the positions of words stay valid."""
    return "".join("�" if character != printable(character) else character for character in text)


def show(explanation: Explanation, console: Console | None = None) -> None:
    """Print the label, the text and the parts with the largest weights."""
    console = console or Console(emoji=False)
    console.print(
        f"[bold]{escape(printable(_name(explanation)))}[/bold]  probability {explanation.probability:.3f}"
        f"  [dim]by {explanation.method}: {explanation.legend}[/dim]"
    )
    console.print()
    console.print(colored_text(explanation), soft_wrap=False)
    console.print()
    console.print(_parts_table(explanation))
    parts = {"words": len(explanation.words), "pairs": len(explanation.edges)}
    more = [f"{n - _MAX_PARTS:,} more {name}" for name, n in parts.items() if n > _MAX_PARTS]
    if more:
        console.print(f"[dim]and {', '.join(more)}[/dim]", highlight=False)
    if explanation.account:
        console.print(f"\n{explanation.account}", highlight=False)
    if len(explanation.sentences) > 1:
        console.print("\n[bold]sentence[/bold]")
        heaviest = sorted(explanation.sentences, key=lambda one: -abs(one.weight))[:_MAX_SENTENCES]
        for sentence in sorted(heaviest, key=lambda one: one.start):
            line = printable(" ".join(explanation.text[sentence.start : sentence.end].split()))
            console.print(f"{sentence.weight:+8.3f}  {escape(line[:80])}", highlight=False)
        if len(explanation.sentences) > _MAX_SENTENCES:
            rest = len(explanation.sentences) - _MAX_SENTENCES
            console.print(f"[dim]and {rest:,} more sentences, which weigh less[/dim]", highlight=False)
    if explanation.note:
        console.print(f"[dim]{escape(explanation.note)}[/dim]")


def _name(explanation: Explanation) -> str:
    against = "" if explanation.against is None else f" and not {explanation.against}"
    return f"{explanation.label}{against}"


def _parts_table(explanation: Explanation) -> Table:
    """Return the words and pairs with the largest weights, and the linear part of each weight if there is one."""
    words, edges = explanation.top_words(_MAX_PARTS), explanation.top_edges(_MAX_PARTS)
    shows_linear = any(word.potential is not None for word in words)
    numbers = ["weight", "linear"] if shows_linear else ["weight"]
    table = Table(box=None, pad_edge=False)
    for heading in ("word", *numbers, "pair of words", *numbers):
        table.add_column(heading, justify="right" if heading in numbers else "left")

    def cells(name: str, part: WordWeight | EdgeWeight) -> list[Text]:
        shown_numbers = [part.weight, part.potential or 0.0][: len(numbers)]
        return [Text(printable(name)), *[Text(f"{number:+.3f}") for number in shown_numbers]]

    left = [cells(explanation.text[word.start : word.end] or word.word, word) for word in words]
    right = [cells(f"{display_word(edge.source)} → {display_word(edge.target)}", edge) for edge in edges]
    empty = [Text()] * (1 + len(numbers))
    for one, other in zip_longest(left, right, fillvalue=empty):
        table.add_row(*one, *other)
    return table


def as_text(explanation: Explanation) -> str:
    """Return the output of `show` without colors, for a file."""
    console = Console(file=io.StringIO(), width=100, color_system=None, emoji=False)
    show(explanation, console)
    return str(console.file.getvalue())  # type: ignore[attr-defined]
