import pytest

from mpad.errors import InputError
from mpad.explain import Explanation, SentenceWeight, WordWeight
from mpad.explain.corpus import class_features
from mpad.explain.drift import drift


def test_telling_words_of_each_class(fitted_flat, fruit_corpus):
    done = []
    fruit, tool = class_features(fitted_flat.model_, fruit_corpus[0][:60], "gradients", done=lambda: done.append(1))
    assert fruit.label == "fruit" and {word.text for word in fruit.words[:3]} == {"apple", "pear", "plum"}
    assert {word.text for word in tool.words[:3]} == {"hammer", "saw", "drill"}
    assert fruit.documents + tool.documents == len(done) == 60
    top = fruit.words[0]
    assert top.text in top.example.lower() and 0 < top.documents <= fruit.documents
    assert all(" → " in edge.text and edge.weight > 0 for edge in fruit.edges)


def test_drift_is_seen_where_there_is_some(fitted_flat, fruit_corpus):
    texts = fruit_corpus[0]
    none = {one.what: one for one in drift(fitted_flat.model_, texts[:60], texts[60:])}
    some = {one.what: one for one in drift(fitted_flat.model_, texts, [f"{text} quux blorb" for text in texts])}
    assert some["share of unknown words"].clear and some["share of unknown words"].difference > 0.1
    assert some["words"].difference == pytest.approx(2) and some["nodes of the graph"].difference > 1
    assert not none["share of unknown words"].clear
    assert none["share of 'fruit'"].first + none["share of 'tool'"].first == pytest.approx(1)
    with pytest.raises(InputError, match="the second has 1"):
        drift(fitted_flat.model_, texts, ["one"])


def made(*weights, sentences=()):
    words = "a moving film and a moving story .".split()
    text = " ".join(words)
    places = [sum(len(word) + 1 for word in words[:k]) for k in range(len(words))]
    parts = [WordWeight(w, p, p + len(w), 0, x) for w, p, x in zip(words, places, weights, strict=True)]
    return Explanation(text, "y", "y", {"y": 1.0}, "gradients", tuple(parts), (), tuple(sentences))


def test_keywords_phrases_and_a_summary():
    explanation = made(0.0, 2.0, 1.0, -1.0, 0.1, 1.5, 0.2, 5.0)
    assert [(one.text, one.weight) for one in explanation.keywords(2)] == [("moving", 3.5), ("film", 1.0)]
    assert explanation.keywords()[0].spans == ((2, 8), (20, 26))
    assert [one.text for one in explanation.phrases()] == ["moving film"]  # a full stop is five times as strong
    together = [WordWeight(word, k, k + 1, 0, 1.0) for k, word in enumerate("很好看")]
    assert (
        Explanation("很好看", "y", "y", {"y": 1.0}, "gradients", tuple(together), (), ()).phrases()[0].text == "很好看"
    )
    sentences = [SentenceWeight(0, 3, 0.2), SentenceWeight(4, 6, 0.9), SentenceWeight(7, 9, 0.5)]
    assert [one.start for one in made(*[0.0] * 8, sentences=sentences).summary(2)] == [4, 7]
    assert made(*[-1.0] * 8).keywords() == made(*[-1.0] * 8).phrases() == []
