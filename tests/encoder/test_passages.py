import pytest

from mpad.encoder.passages import MOST_WORDS, _twin, cut_passages

TEXT = "One cat sat. Two dogs ran! Was it bad? No, it was not bad at all, said the man with the red hat. The end."


def test_runs_of_sentences_are_the_text_and_spans_are_parts_of_them():
    passages = list(cut_passages([TEXT] * 50, seed=1))
    for passage in passages:
        assert 1 <= len(passage.split()) <= MOST_WORDS
    twins = [passage for passage in passages if passage not in TEXT]
    assert all(len(twin.split()) <= 9 for twin in twins) and len(twins) < len(passages) / 2
    assert any(len(passage.split()) <= 8 and "not" in passage.split() for passage in passages)


@pytest.mark.parametrize(
    ("span", "twin"),
    [
        ("it was not bad", "it was bad"),
        ("I don't like it", "I do like it"),
        ("Nobody came", "everybody came"),
        ("the film is good", "the film is not good"),
        ("the red hat", None),
    ],
)
def test_the_twin_of_a_span_has_the_opposite_meaning(span, twin):
    assert _twin(span.split()) == (None if twin is None else twin.split())


def test_the_same_seed_cuts_the_same():
    assert list(cut_passages([TEXT] * 9, seed=3)) == list(cut_passages([TEXT] * 9, seed=3))
    assert list(cut_passages([TEXT] * 9, seed=3)) != list(cut_passages([TEXT] * 9, seed=4))


def test_long_sentences_and_empty_texts():
    long = "word " * 500
    assert all(len(passage.split()) <= MOST_WORDS for passage in cut_passages([long, "", "  \n "]))
