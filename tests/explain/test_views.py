import io
from html.parser import HTMLParser

import pytest
from rich.console import Console

from mpad.explain import Explanation, WordWeight
from mpad.explain.colour import AGAINST, FOR, mixed, strength
from mpad.explain.terminal import coloured_text, show

NASTY = "<script>alert('x')</script> a [bold]plum[/bold] & \"quotes\" مرحبا 😀"


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text, self.attributes = set(), "", []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [value for _, value in attrs]

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("method", ["gradients", "occlusion", "attention"])
def test_html_is_self_contained_and_shows_documents_as_text(fitted, method):
    explanation = fitted.explain(NASTY, method=method)
    page, reader = explanation.to_html(), Reader()
    reader.feed(page)
    assert NASTY in reader.text
    assert "script" not in reader.tags and "link" not in reader.tags and "img" not in reader.tags
    assert "http" not in page and "@import" not in page
    assert explanation._repr_html_() in page


def test_the_terminal_shows_text_and_weights(fitted_flat):
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    show(fitted_flat.explain(NASTY + " and the apple"), console)
    printed = console.export_text()
    assert "[bold]plum[/bold]" in printed and "probability" in printed and "→" in printed


def test_a_long_document_is_cut_in_the_terminal(fitted_flat):
    shown = coloured_text(fitted_flat.explain("the of " * 3000 + "apple " + "to a " * 3000, method="occlusion")).plain
    assert "apple" in shown and "of 12,001 words" in shown and len(shown) < 20_000


def test_colours_follow_the_sign():
    words = WordWeight("good", 0, 4, 0, 2.0), WordWeight("bad", 5, 8, 0, -2.0)
    explanation = Explanation("good bad", "y", "y", {"y": 1.0}, "occlusion", words, (), ())
    spans = coloured_text(explanation).spans
    hexes = ["#{:02x}{:02x}{:02x}".format(*colour) for colour in (FOR, AGAINST)]
    assert [colour in str(span.style) for colour, span in zip(hexes, spans, strict=True)] == [True, True]
    assert strength(1, 0) == 0 and mixed(0.0, (1, 2, 3)) == (1, 2, 3)
    assert "background: rgba(43, 131, 203, 0.75)" in explanation.to_html()
