import numpy as np
import pytest

from mpad import MPADClassifier
from mpad.data.inspection import kinds_of_text, label_findings, language_of, leaks, scripts_of, text_findings
from mpad.errors import DataWarning, InputError
from mpad.paper import zoo

QUICK = {"hidden": 4, "vector_size": 4, "max_epochs": 1, "random_state": 0}


def fit(texts, y, **options):
    return MPADClassifier(**{**QUICK, **options}).fit(texts, y)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["pos", "pos ", "neg"], r"hardly differ \(spaces, capitals\): 'pos', 'pos '; write them alike"),
        (["Pos", "pos", "neg"], r"'Pos', 'pos'"),
        (["pos", "pos\u200b", "neg"], r"hardly differ"),
        (["caf\u00e9", "cafe\u0301", "neg"], r"hardly differ"),
        (["pos", "nan", "neg"], r"look like missing ones: 'nan'; drop those rows"),
    ],
)
def test_slips_in_labels_are_told(labels, said):
    texts = ["good film", "very good film", "bad film"]
    with pytest.warns(DataWarning, match=said):
        fit(texts, labels)
    with pytest.warns(DataWarning, match=said):
        zoo.make("tfidf-svm").fit(texts, labels)


@pytest.mark.parametrize("kind", [float, str])
def test_measurements_are_no_classes(kind):
    values = [kind(x) for x in np.random.default_rng(0).normal(size=60)]
    for model in (MPADClassifier(**QUICK), zoo.make("tfidf-svm")):
        with pytest.raises(InputError, match="60 different numbers in 60 documents.*a measurement, not a class"):
            model.fit(["word"] * 60, values)


def test_half_stars_are_classes():
    fit(["a", "b", "c", "d"], [0.5, 1.0, 0.5, 1.0])


def test_decimals_of_many_documents_are_told():
    values = [f"{k % 25}.5" for k in range(100)]
    with pytest.warns(DataWarning, match="labels that look like measurements"):
        zoo.make("tfidf-svm").fit(["word"] * 100, values)


@pytest.mark.parametrize(("y", "said"), [([1, "1"], "mix strings and other types"), (["a", "b\0"], "a NUL character")])
def test_labels_that_numpy_would_merge(y, said):
    with pytest.raises(InputError, match=said):
        fit(["x", "y"], y)


@pytest.mark.parametrize("y", [[b"a", b"b"], [{"a": 1}, {"b": 1}]])
def test_labels_are_strings_or_numbers(y):
    with pytest.raises(InputError, match="labels are strings or numbers"):
        fit(["x", "y"], y)


def test_documents_without_a_word_are_refused():
    with pytest.raises(InputError, match="not one word is left of any of the 2 documents: all texts are empty"):
        fit(["", " "], [0, 1])
    with pytest.raises(InputError, match="the tokenizer 'kim' drops CJK: tokenizer='unicode-punctuation'"):
        fit(["电影很好", "电影不好"], [0, 1], tokenizer="kim")
    fit(["电影很好", "电影不好"], [0, 1])
    rival = zoo.make("tfidf-svm").fit(["电影很好", "电影不好"] * 3, [0, 1] * 3)
    assert rival.predict(["很好", "不好"]).tolist() == [0, 1], "the baseline reads what the model reads"
    with pytest.raises(InputError, match="all texts are empty"):
        zoo.make("tfidf-svm").fit(["", " "], [0, 1])


def test_a_script_that_is_dropped_is_told():
    with pytest.warns(DataWarning, match=r"2 documents are left without a word: 'kim' drops CYRILLIC"):
        fit(["good film", "bad film", "хороший фильм", "плохой фильм"], [0, 1, 0, 1], tokenizer="kim")
    with pytest.warns(DataWarning, match=r"drops the 11 % of letters that are not ASCII"):
        fit(["schönes Gerät", "schlechtes Gerät"], [0, 1], tokenizer="kim")


def test_findings_of_a_file():
    good = "the film is good " * 50  # so that the words of all are the paper's
    texts = [good, good.replace("the film ", "The film  "), good, "", "电影"]
    found = {one.what: one.number for one in text_findings(texts, ["a", "a", "b", "a", "b"])}
    assert found == {
        "documents that repeat an earlier text": 2,
        "texts with more than one label": 1,
        "empty documents": 1,
        "documents of which the tokenizer 'kim' leaves no word": 1,
    }
    assert [one.number for one in leaks(texts, [good.replace("film", "FILM"), "new"])] == [1]
    assert [one.what for one in label_findings(["a"] * 9 + ["b"])] == ["classes with fewer than 5 documents"]


def test_scripts_and_languages():
    assert scripts_of("schön, фильм 电影") == {"LATIN", "CYRILLIC", "CJK"}
    assert language_of("Der Film ist nicht gut, und die Musik auch nicht.") == "German"
    assert language_of("I was not happy with the sound of this.") == "English"
    assert language_of("xyzzy") == "unknown"
    kinds = {one.what for one in kinds_of_text(["the film is one of the best", "der Film und die Musik"])}
    assert kinds == {"script: LATIN", "language: English", "language: German"}
