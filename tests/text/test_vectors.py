import numpy as np
import pytest

from mpad.errors import VectorFileError
from mpad.text.tokenizer import as_tokenizer
from mpad.text.vectors import load_vectors, random_vectors, train_vectors
from mpad.text.vocabulary import SPARE_ROWS, Vocabulary


@pytest.fixture
def vector_file(tmp_path):
    path = tmp_path / "v.txt"
    words = ["the", "?", "cat", "dog", "sun", "moon"]
    path.write_text("\n".join(f"{w} {n + 1} {-n - 1}" for n, w in enumerate(words)) + "\n")
    return path


def test_rows_of_known_words_and_random_rows_for_the_rest(vector_file):
    vectors = load_vectors(vector_file, Vocabulary(["cat", "blorb", "the"], seen=3))
    assert vectors.rows.shape == (3 + SPARE_ROWS, 2) and vectors.covered == 2
    assert vectors.rows[0].tolist() == [3, -3] and vectors.rows[2].tolist() == [1, -1]
    known_spread = vectors.rows[[0, 2]].std()
    assert 0.7 * known_spread < vectors.rows[3:].std() < 1.3 * known_spread
    again = load_vectors(vector_file, Vocabulary(["cat", "blorb", "the"], seen=3))
    assert np.array_equal(vectors.rows, again.rows)


def test_words_of_the_file_are_kept_for_documents_to_come(vector_file):
    vectors = load_vectors(vector_file, Vocabulary(["cat"], seen=1), extra=2)
    assert list(vectors.vocabulary.words) == ["cat", "the", "?"]  # the file's first, most frequent words
    assert vectors.rows[1].tolist() == [1, -1]
    assert vectors.vocabulary.seen == 1 and vectors.covered == 1


def test_kims_escaped_marks_find_their_rows(vector_file):
    vectors = load_vectors(vector_file, Vocabulary(["cat", "\\?"], seen=2))
    assert vectors.rows[1].tolist() == [2, -2]


def test_a_file_of_another_language(vector_file):
    with pytest.raises(VectorFileError, match="holds none of the 1 words"):
        load_vectors(vector_file, Vocabulary(["Katze"], seen=1), extra=5)


@pytest.mark.parametrize("value", ["nan", "1e30", "1e99"])
def test_numbers_that_cannot_be_kept(tmp_path, value):
    (tmp_path / "v.txt").write_text(f"cat 1 {value}\n")
    with pytest.raises(VectorFileError, match="the vector of 'cat' holds NaN or a number beyond 65504"):
        load_vectors(tmp_path / "v.txt", Vocabulary(["cat"], seen=1))


def test_random_rows_are_seeded():
    one, same, other = (random_vectors(Vocabulary(["a"]), 5, seed).rows for seed in (1, 1, 2))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


@pytest.mark.filterwarnings("ignore")
def test_vectors_trained_on_the_corpus():
    pytest.importorskip("gensim")
    texts = ["the cat sat on the mat", "the dog sat on the rug"] * 30
    vectors = train_vectors(texts, as_tokenizer("kim"), Vocabulary(["the", "cat", "zebra"]), width=8, seed=0)
    assert vectors.covered == 2 and vectors.rows.shape == (3 + SPARE_ROWS, 8)


def test_words_with_capitals_borrow_the_row_without(vector_file, tmp_path):
    vectors = load_vectors(vector_file, Vocabulary(["Cat", "CAT", "cat", "Blorb"], seen=4))
    assert vectors.rows[:3].tolist() == [[3, -3]] * 3 and vectors.covered == 1  # one row of its own
    cased = tmp_path / "cased.txt"
    cased.write_text("cat 1 1\nCat 2 2\n")
    assert load_vectors(cased, Vocabulary(["Cat", "CAT"], seen=2)).rows[:2].tolist() == [[2, 2], [1, 1]]
