import re
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpad.errors import InputError
from mpad.text.tokenizer import DOCUMENT_END, KimTokenizer, as_tokenizer


def clean_str(string: str) -> str:
    """Kim's function, straightforwardly."""
    string = re.sub(r"[^A-Za-z0-9(),!?\'\`]", " ", string)
    string = re.sub(r"\'s", " 's", string)
    string = re.sub(r"\'ve", " 've", string)
    string = re.sub(r"n\'t", " n't", string)
    string = re.sub(r"\'re", " 're", string)
    string = re.sub(r"\'d", " 'd", string)
    string = re.sub(r"\'ll", " 'll", string)
    string = re.sub(r",", " , ", string)
    string = re.sub(r"!", " ! ", string)
    string = re.sub(r"\(", r" \( ", string)  # Kim's replacement leaves the backslash in
    string = re.sub(r"\)", r" \) ", string)
    string = re.sub(r"\?", r" \? ", string)
    string = re.sub(r"\s{2,}", " ", string)
    return string.strip().lower()


# Text that hits every rule, beside arbitrary Unicode (lone surrogates and control characters included).
tricky = st.text(alphabet=st.sampled_from("aAnNsSvVeErRdDlLtT'`,!?().;:- \n\t\x00\x01\x1e0é漢😀\ud800"))
anything = st.one_of(tricky, st.text(st.characters(codec=None)))


@given(anything)
def test_kim_is_clean_str_to_the_letter(text):
    assert KimTokenizer().words(text) == clean_str(text).split()


@given(st.lists(tricky, max_size=5))
def test_documents_do_not_touch(texts):
    tokenizer = KimTokenizer()
    words = [word for chunk in tokenizer.split(texts) for word in chunk]
    documents = " ".join(words).split(DOCUMENT_END)[: len(texts)]
    assert [document.split() for document in documents] == [tokenizer.words(text) for text in texts]


@pytest.mark.parametrize("name", ["kim", "kim-cased", "unicode", "unicode-punctuation"])
@given(text=anything)
def test_offsets_give_each_word_back(name, text):
    tokenizer = as_tokenizer(name)
    tokens = tokenizer.trace(text)
    assert tokens.words == tokenizer.words(text)
    cursor = 0
    for word, (start, end) in zip(tokens.words, tokens.spans, strict=True):
        assert cursor <= start < end
        cursor = end
        shown = text[start:end]
        if name.startswith("unicode"):
            shown = normalize("NFC", re.sub("[\ufe00-\ufe0f]", "", shown.lower().replace("’", "'")))
        assert word.removeprefix("\\") == (shown.lower() if name == "kim" else shown)
    assert tokens.sentences == sorted(tokens.sentences)
    assert sorted(set(tokens.sentences)) == list(range(len(set(tokens.sentences))))


def test_worked_example():
    assert as_tokenizer("kim").words("I didn't (really) like IT'S end, it's why?!") == [
        "i", "did", "n't", "\\(", "really", "\\)", "like", "it's", "end", ",", "it", "'s", "why", "\\?", "!",
    ]  # fmt: skip


def test_case_can_be_kept():
    assert as_tokenizer("kim-cased").words("What's NASA?") == ["What", "'s", "NASA", "\\?"]


def test_sentences_end_at_marks_before_space_and_at_blank_lines():
    tokens = as_tokenizer("kim").trace("Pi is 3.14 today. Really?! Yes; no\n\na title\nof two lines")
    assert tokens.words == "pi is 3 14 today really \\? ! yes no a title of two lines".split()
    assert tokens.sentences == [0] * 5 + [1] * 3 + [2] + [3] + [4] * 5


def test_other_scripts():
    tokenizer = as_tokenizer("unicode")
    assert tokenizer.words("नमस्ते दुनिया") == ["नमस्ते", "दुनिया"]  # vowel signs stay inside words
    assert tokenizer.words("我爱你 Привет l’été 😀!") == ["我", "爱", "你", "привет", "l'été", "😀", "!"]
    assert tokenizer.trace("你好。再见。").sentences == [0, 0, 1, 1]


def test_punctuation_of_every_script_as_words():
    tokenizer = as_tokenizer("unicode-punctuation")
    assert tokenizer.words("n_samples, (très) bon!") == ["n", "samples", ",", "(", "très", ")", "bon", "!"]
    assert tokenizer.words("你好，（再见）") == ["你", "好", "，", "（", "再", "见", "）"]
    assert as_tokenizer("unicode").words("n_samples, (très) bon!") == ["n_samples", "très", "bon", "!"]


def test_any_function_is_a_tokenizer():
    tokenizer = as_tokenizer(str.split)
    tokens = tokenizer.trace("One two. Three")
    assert tokens.words == ["One", "two.", "Three"]
    assert tokens.spans == [(0, 3), (4, 8), (9, 14)]
    assert tokens.sentences == [0, 0, 1]


def test_words_changed_beyond_recognition_stand_where_they_were_met():
    tokens = as_tokenizer(lambda text: ["ran" if word == "running" else word for word in text.split()]).trace(
        "I running on"
    )
    assert tokens.spans == [(0, 1), (1, 1), (10, 12)]


def test_a_tokenizer_by_module_and_name():
    assert as_tokenizer("shlex:split").words("a 'b c'") == ["a", "b c"]
    with pytest.raises(InputError, match="cannot be imported"):
        as_tokenizer("nowhere:nothing")


@pytest.mark.parametrize(
    ("choice", "said"), [("klm", "known: auto, kim, kim-cased, unicode"), (3, "a name or a function, not int")]
)
def test_unknown_tokenizers(choice, said):
    with pytest.raises(InputError, match=said):
        as_tokenizer(choice)


def test_a_function_that_gives_no_strings():
    with pytest.raises(InputError, match="gave 3"):
        as_tokenizer(lambda text: [3]).words("a")
