import pytest

from benchmarks import figures


def test_the_pages_show_the_recorded_figures():
    figures.main(["--check"])


def test_a_wrong_figure_is_found_and_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "FIGURES", tmp_path / "figures.toml")
    monkeypatch.setattr(figures, "TABLES", {"page.md": [lambda: "| a |\n| --- |\n| 2 |\n"]})
    (tmp_path / "figures.toml").write_text('["page.md"]\n"takes {:.1f} s" = "record.json > rows > step=fit > took"\n')
    (tmp_path / "record.json").write_text('{"rows": [{"step": "fit", "took": "2.04 s"}]}')
    page = tmp_path / "page.md"
    page.write_text("It takes\n3.1 s.\n\n| a |\n| --- |\n| 1 |\n\nEnd\n")
    with pytest.raises(SystemExit, match=r"-3\.1 s\.\n\+2\.0 s"):
        figures.main(["--check"])
    figures.main([])
    assert page.read_text() == "It takes\n2.0 s.\n\n| a |\n| --- |\n| 2 |\n\nEnd\n"
    figures.main(["--check"])


@pytest.mark.parametrize("text", ["It takes a second.", "It takes 3.1 s or takes 3.2 s."])
def test_words_that_are_missing_or_not_unique_are_an_error(text):
    with pytest.raises(LookupError, match="expected once"):
        figures.insert_figures(text, "takes {:.1f} s", [2.04])
