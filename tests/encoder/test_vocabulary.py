from collections import Counter

from mpad.encoder.vocabulary import count_words, encode_pieces, learn_pieces, spelling
from mpad.text.tokenizer import as_tokenizer

KIM = as_tokenizer("kim", [])


def test_frequent_words_are_whole_and_others_become_pieces():
    texts = ["the cat sat on the mat"] * 5 + ["catlike zebra"]
    counts = count_words(texts, KIM)
    assert counts["the"] == 10
    vocabulary = learn_pieces(counts, n_words=5, n_pieces=60)
    assert set(vocabulary.words[: vocabulary.seen]) == {"the", "cat", "sat", "on", "mat"}
    corpus = encode_pieces(vocabulary, ["the cat", "zoo", ""], KIM)
    assert len(corpus.document_start) == 4
    ids = corpus.ids.tolist()
    assert ids[:2] == [vocabulary.id("the"), vocabulary.id("cat")] and len(ids) > 2
    assert "".join(spelling(vocabulary.words[k]) for k in ids[2:]) == "zoo"


def test_rare_words_have_no_vector_of_their_own():
    vocabulary = learn_pieces(Counter({"often": 3, "twice": 2}), n_words=10, n_pieces=30)
    assert vocabulary.words[: vocabulary.seen] == ["often"]
