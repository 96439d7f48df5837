"""One compiled pass over text finds the words that the tokenizer finds, and numbers them as the vocabulary does."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpad.text import vocabulary
from mpad.text.tokenizer import KimTokenizer
from mpad.text.vocabulary import Vocabulary, learn_vocabulary

pytestmark = pytest.mark.skipif(not vocabulary.has_compiled_words(), reason="the compiled passes were not built")

pieces = st.sampled_from(
    [
        "'s",
        "'ve",
        "n't",
        "'re",
        "'d",
        "'ll",
        "'",
        "n",
        "t",
        "N't",
        "'S",
        "ca",
        "Word",
        "x9",
        "`",
        " ",
        ",",
        "!",
        "(",
        ")",
    ]
    + ["?", ".", "\n", "\x00", "\x01", "é", "中", "\ud800", "\x85", "\u2028", "-", "\\", "\x1c", "'v", "'l", "'r"]
)
texts = st.lists(st.lists(pieces, max_size=12).map("".join) | st.text(max_size=20), max_size=6)


def without(monkeypatch, function):
    with monkeypatch.context() as patch:
        patch.setattr(vocabulary, "has_compiled_words", lambda: False)
        return function()


def same(one, other):
    assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in vars(one))


@settings(max_examples=400, deadline=None)
@given(texts, st.booleans(), st.booleans())
def test_the_same_words_and_numbers(documents, sentences, lower):
    tokenizer = KimTokenizer(lower)
    with pytest.MonkeyPatch.context() as monkeypatch:
        ours = learn_vocabulary(documents, tokenizer, sentences)
        theirs = without(monkeypatch, lambda: learn_vocabulary(documents, tokenizer, sentences))
        assert list(ours[0].words) == list(theirs[0].words)
        same(ours[1], theirs[1])
        other = Vocabulary(["a", "ca", "n't", "'s", "\\(", "é", *list(ours[0].words)[::2]])  # some words are not in it
        same(
            other.encode(documents, tokenizer, sentences),
            without(monkeypatch, lambda: other.encode(documents, tokenizer, sentences)),
        )


def test_room_grows(monkeypatch):
    monkeypatch.setattr(vocabulary, "_FIRST", 2)
    documents = [" ".join(f"w{k * k % 997}x{'y' * (k % 40)}" for k in range(3_000)), "w1 w2 it's"] * 2
    ours = learn_vocabulary(documents, KimTokenizer())
    theirs = without(monkeypatch, lambda: learn_vocabulary(documents, KimTokenizer()))
    assert list(ours[0].words) == list(theirs[0].words)
    same(ours[1], theirs[1])


def test_of_a_word_that_is_there_twice_the_last_counts(monkeypatch):
    vocabulary = Vocabulary(["a", "b", "a"])
    ids = vocabulary.encode(["a b a"], KimTokenizer()).ids
    assert ids.tolist() == without(monkeypatch, lambda: vocabulary.encode(["a b a"], KimTokenizer())).ids.tolist()


def test_another_tokenizer_of_that_family_keeps_its_own_way():
    class Backwards(KimTokenizer):
        def _split(self, joined):
            return [word[::-1] for word in super()._split(joined)]

    vocabulary, _ = learn_vocabulary(["one two"], Backwards())
    assert list(vocabulary.words) == ["eno", "owt"]


def test_several_threads_read_at_once():
    vocabulary = Vocabulary([f"w{k}" for k in range(500)])
    documents = [" ".join(f"w{(k * 7 + d) % 600}" for k in range(200)) for d in range(50)]
    expected, found = vocabulary.encode(documents, KimTokenizer()).ids, []

    def read():
        found.extend(vocabulary.encode(documents, KimTokenizer()).ids for _ in range(20))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(np.array_equal(ids, expected) for ids in found)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.text("abé中##", max_size=4), max_size=40), st.lists(st.text("abé中#A", max_size=120), max_size=6))
def test_the_same_pieces(known, words):
    vocabulary = Vocabulary(list(dict.fromkeys(known)))
    assert vocabulary._pieces_of_each(words) == tuple(map(vocabulary.pieces, words))
