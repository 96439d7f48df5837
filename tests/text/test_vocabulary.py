import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mpad.text.tokenizer import as_tokenizer
from mpad.text.vocabulary import SPARE_ROWS, Vocabulary, iterate_sentences, learn_vocabulary

KIM = as_tokenizer("kim")


def test_most_frequent_first_ties_in_order_of_appearance():
    vocabulary, corpus = learn_vocabulary(["b a a", "c a b"], KIM)
    assert list(vocabulary.words) == ["a", "b", "c"]
    assert corpus.ids.tolist() == [1, 0, 0, 2, 0, 1]
    assert corpus.sentence_start.tolist() == [0, 3, 6]
    assert corpus.document_start.tolist() == [0, 1, 2]


def test_sentences_and_empty_documents():
    _, corpus = learn_vocabulary(["a. . b c.", "", " ; ", "d"], KIM, sentences=True)
    assert corpus.sentence_start.tolist() == [0, 1, 3, 3, 3, 4]  # the empty ones keep one empty sentence
    assert corpus.document_start.tolist() == [0, 2, 3, 4, 5]


def test_no_documents():
    vocabulary, corpus = learn_vocabulary([], KIM)
    assert len(vocabulary) == 0
    assert corpus.document_start.tolist() == [0]


def test_unknown_words_get_spare_rows_always_the_same():
    vocabulary = Vocabulary(["a", "b"])
    ids = vocabulary.encode(["a zzz b zzz yyy"], KIM).ids.tolist()
    assert ids[0] == 0 and ids[2] == 1 and ids[1] == ids[3] != ids[4]
    assert all(2 <= number < 2 + SPARE_ROWS for number in (ids[1], ids[4]))
    assert vocabulary.encode(["yyy"], KIM).ids.tolist() == ids[4:]
    assert "zzz" not in vocabulary  # asking does not teach


def test_rare_words_share_the_spare_rows():
    vocabulary, corpus = learn_vocabulary(["a a b"], KIM, min_count=2)
    assert list(vocabulary.words) == ["a"]
    assert corpus.ids.tolist() == vocabulary.encode(["a a b"], KIM).ids.tolist()
    assert list(learn_vocabulary(["a a b b c"], KIM, max_words=1)[0].words) == ["a"]


@given(st.lists(st.text(alphabet="ab.c !", max_size=12), max_size=8), st.booleans())
def test_learning_encodes_as_encoding_does(texts, sentences):
    vocabulary, learnt = learn_vocabulary(texts, KIM, sentences)
    encoded = vocabulary.encode(texts, KIM, sentences)
    for name in ("ids", "sentence_start", "document_start"):
        assert np.array_equal(getattr(learnt, name), getattr(encoded, name))
    assert len(learnt.document_start) == len(texts) + 1
    assert (np.diff(learnt.document_start) >= 1).all()


def test_extending_keeps_ids():
    vocabulary = Vocabulary(["a"], seen=1).with_words(["b", "a", "c", "b"])
    assert list(vocabulary.words) == ["a", "b", "c"] and vocabulary.seen == 1


def test_sentences_for_training_vectors():
    assert list(iterate_sentences(["a b. c", "", "d"], KIM)) == [["a", "b"], ["c"], ["d"]]


def test_a_corpus_follows_its_vocabulary_as_that_grows():
    texts = ["a a b rare", "a b other"]
    vocabulary, corpus = learn_vocabulary(texts, as_tokenizer("kim"), min_count=2)
    grown = vocabulary.with_words(["new", "words"])
    moved = corpus.shift_spare_rows(len(vocabulary), len(grown))
    assert moved.ids.tolist() == grown.encode(texts, as_tokenizer("kim")).ids.tolist() and moved.ids.dtype == np.int32
