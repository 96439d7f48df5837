from mpad.encoder.passages import MOST_WORDS, cut_passages

TEXT = "One cat sat. Two dogs ran! Was it bad? No, it was not bad at all, said the man with the red hat. The end."


def test_runs_of_sentences_are_the_text_and_spans_are_parts_of_them():
    passages = list(cut_passages([TEXT] * 50, seed=1))
    assert {sentence for sentence in TEXT.replace("!", ".").replace("?", ".").split(".") if sentence.strip()}
    for passage in passages:
        assert passage in TEXT and 1 <= len(passage.split()) <= MOST_WORDS
    assert any(len(passage.split()) <= 8 and "not" in passage.split() for passage in passages)


def test_the_same_seed_cuts_the_same():
    assert list(cut_passages([TEXT] * 9, seed=3)) == list(cut_passages([TEXT] * 9, seed=3))
    assert list(cut_passages([TEXT] * 9, seed=3)) != list(cut_passages([TEXT] * 9, seed=4))


def test_long_sentences_and_empty_texts():
    long = "word " * 500
    assert all(len(passage.split()) <= MOST_WORDS for passage in cut_passages([long, "", "  \n "]))
