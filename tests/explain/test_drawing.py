import numpy as np
import pytest

from mpad.explain import EdgeWeight, Explanation, WordWeight
from mpad.explain.layout import MAX_NODES, draw
from mpad.explain.page import to_svg


def chain(n):
    """N words in a row, the last the strongest."""
    words = [f"w{k}" for k in range(n)]
    text = " ".join(words)
    at = np.cumsum([0, *[len(word) + 1 for word in words]])
    starts = [int(start) for start in at[:-1]]
    parts = tuple(WordWeight(w, s, s + len(w), 0, k / n) for k, (w, s) in enumerate(zip(words, starts, strict=True)))
    pairs = zip(parts[:-1], parts[1:], strict=True)
    edges = tuple(
        EdgeWeight(a.word, b.word, 1.0, (((a.start, a.end), (b.start, b.end)),), -0.5 * b.weight) for a, b in pairs
    )
    return Explanation(text, "y", "y", {"y": 0.7, "n": 0.3}, "gradients", parts, edges, ())


def test_places_are_inside_apart_and_the_same_every_time():
    drawing = draw(chain(12))
    places = np.array([(node.x, node.y) for node in drawing.nodes])
    assert places.min() >= 0 and places.max() <= 1 and drawing == draw(chain(12)) and not drawing.note
    apart = np.sqrt(((places[:, None] - places[None]) ** 2).sum(-1)) + np.eye(12)
    assert apart.min() > 0.05
    linked = np.mean([apart[a, b] for a, b, _ in drawing.edges])
    assert linked < apart[~np.eye(12, dtype=bool)].mean()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_hardly_any_words(n):
    drawing = draw(chain(n) if n else Explanation("", "y", "y", {"y": 1.0}, "gradients", (), (), ()))
    assert len(drawing.nodes) == n and (to_svg(drawing) == "") == (n == 0)


def test_of_many_words_the_strongest_are_drawn_and_it_says_so():
    drawing = draw(chain(500))
    assert len(drawing.nodes) == MAX_NODES and drawing.nodes[-1].word == "w499"
    assert f"{MAX_NODES} of 500 words" in drawing.note


def test_the_svg_marks_direction_width_and_sign():
    svg = to_svg(draw(chain(3)), "p", master=True)
    assert svg.count('<path class="edge against"') == 2 and "marker-end" in svg and "master" in svg
    assert 'href="#pw2"' in svg and "w0 → w1: -0.1667, 1 times" in svg


def test_fifty_thousand_words_make_a_page_of_bearable_size():
    page = chain(50_000).to_html()
    assert len(page) < 2_000_000 and "of 50,000 words, those around the strongest" in page
    assert "w49999" in page and " … " in page


def test_a_figure_shows_the_text_itself_and_says_what_is_left_out(fitted):
    figures = pytest.importorskip("matplotlib.figure", reason="needs the extra 'plots'")
    figure = fitted.explain("Café (naïve) costs $5. The apple!").to_figure()
    written = [text.get_text() for text in figure.texts]
    assert isinstance(figure, figures.Figure) and {"Caf", "costs", r"\$5." if r"\$5." in written else "5"} <= set(
        written
    )
    assert any(text.startswith(("+", "-")) for text in written)  # weights of sentences
    long = chain(1_000).to_figure()
    assert any("of 1,000 words, those around the strongest" in text.get_text() for text in long.texts)
    assert any("w999" == text.get_text() for text in long.texts)


def test_a_figure_for_papers(tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra 'plots'")
    for suffix in ("svg", "png"):
        chain(30).to_figure().savefig(tmp_path / f"why.{suffix}")
        assert (tmp_path / f"why.{suffix}").stat().st_size > 5_000
    assert "w29" in (tmp_path / "why.svg").read_text() or "<path" in (tmp_path / "why.svg").read_text()
