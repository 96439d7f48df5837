import io
import json
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

from mpad.explain import EdgeWeight, Explanation, WordWeight
from mpad.explain.figure import _reads_right_to_left
from mpad.explain.layout import OPPOSES, SUPPORTS, blend_color, scale_weights
from mpad.explain.page import write_pages
from mpad.explain.terminal import as_text, colored_text, show

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
    shown = colored_text(fitted_flat.explain("the of " * 3000 + "apple " + "to a " * 3000, method="occlusion")).plain
    assert "apple" in shown and "of 12,001 words" in shown and len(shown) < 20_000


def test_colours_follow_the_sign():
    words = WordWeight("good", 0, 4, 0, 2.0), WordWeight("bad", 5, 8, 0, -2.0)
    explanation = Explanation("good bad", "y", "y", {"y": 1.0}, "occlusion", words, (), ())
    spans = colored_text(explanation).spans
    hexes = ["#{:02x}{:02x}{:02x}".format(*colour) for colour in (SUPPORTS, OPPOSES)]
    assert [colour in str(span.style) for colour, span in zip(hexes, spans, strict=True)] == [True, True]
    assert scale_weights([0.0, 0.0]) == [0.0, 0.0] and blend_color(0.0, (1, 2, 3)) == (1, 2, 3)
    assert "background: rgba(43, 131, 203, 0.75)" in explanation.to_html()


class TestSentencesAndSums:
    def test_sentences_are_those_that_people_read(self, fitted_flat):
        text = "He had the apple; # it was 4 . 5 stars. The saw was 4.5 too! Not the drill"
        explanation = fitted_flat.explain(text)
        said = [text[one.start : one.end] for one in explanation.sentences]
        assert [one.split()[0] for one in said] == ["He", "The", "Not"]

    def test_the_heaviest_sentences_are_listed_and_the_others_counted(self, fitted_flat):
        text = " ".join(
            ["it was on and on."] * 30 + ["the apple and the pear and the plum."] + ["it was on and on."] * 9
        )
        shown = as_text(fitted_flat.explain(text))
        assert "the apple and the pear and the plum" in shown.split("sentence", 1)[1]
        assert "28 more sentences" in shown and "more words" in shown and "more pairs" in shown

    def test_weights_lead_from_the_baseline_to_the_total(self, fitted_flat):
        explanation = fitted_flat.explain("the apple was not a saw")
        p = explanation.probability
        assert explanation.total == pytest.approx(np.log(p / (1 - p)), abs=1e-3)
        words = sum(word.weight for word in explanation.words)
        assert explanation.baseline + words == pytest.approx(explanation.total, abs=0.05 * max(1, abs(words)))
        record = explanation.to_dict()
        assert record["total"] == explanation.total and record["baseline"] == explanation.baseline
        for view in (as_text(explanation), explanation.to_html()):
            assert f"{explanation.baseline:+.3f} without words" in view
        assert fitted_flat.explain("the apple", method="occlusion").account == ""


class TestRightToLeft:
    TEXT = "שלום עולם"
    WORDS = (WordWeight("שלום", 0, 4, 0, 1.0), WordWeight("עולם", 5, 9, 0, 0.5))
    EDGES = (EdgeWeight("שלום", "עולם", 1.0, (((0, 4), (5, 9)),), 0.3),)

    def explanation(self):
        chances = {"ספורט": 0.7, "b": 0.3}
        return Explanation(self.TEXT, "ספורט", "ספורט", chances, "gradients", self.WORDS, self.EDGES, ())

    def test_html_keeps_labels_and_arrows_in_their_own_direction(self):
        page = self.explanation().to_html()
        assert "<h1><bdi>ספורט</bdi>" in page
        assert '<span dir="ltr"><bdi>שלום</bdi> → <bdi>עולם</bdi></span>' in page

    def test_a_figure_runs_from_right_to_left(self):
        pytest.importorskip("matplotlib")
        drawn = {text.get_text(): text.get_position()[0] for text in self.explanation().to_figure().texts}
        assert drawn["שלום"] > drawn["עולם"]

    def test_the_first_letter_decides(self):
        assert _reads_right_to_left("12 التفاحة apple") and not _reads_right_to_left("apple التفاحة")


def test_a_folder_of_pages_has_an_index(fitted_flat, tmp_path):
    write_pages((fitted_flat.explain(text) for text in ("the apple", "<b>a saw</b>")), tmp_path / "why")
    index = (tmp_path / "why" / "index.html").read_text()
    assert 'href="00002.html"' in index and "&lt;b&gt;a saw" in index
    lines = (tmp_path / "why" / "explanations.jsonl").read_text().splitlines()
    assert [json.loads(line)["label"] for line in lines] == ["fruit", "tool"]
