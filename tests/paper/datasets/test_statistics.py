import os
from pathlib import Path

import numpy as np
import pytest

from mpad import load_dataset
from mpad.data.readers import Documents
from mpad.paper.datasets.dataset import Dataset
from mpad.paper.datasets.statistics import describe, text_groups

needs_data = pytest.mark.skipif(
    not (Path(os.environ.get("MPAD_DATA") or "/nowhere") / "trec").is_dir(), reason="needs the datasets (MPAD_DATA)"
)


def test_counts_worked_out_by_hand(tmp_path):
    train = Documents(["A cat. sat?", "a CAT, sat ?", "dogs", "dogs", "..."], ["x", "x", "x", "y", "y"])
    dataset = Dataset("small", train, test=Documents(["Dogs!!", "dogs", "cat"], ["x", "x", "z"]))
    np.savez(tmp_path / "v.npz", words=np.array(["cat", "Cat", "?", "other"]), vectors=np.ones((4, 2), np.float32))
    found = describe(dataset, "kim", tmp_path / "v.npz")
    assert (found.training, found.test, found.classes) == (5, 3, 3)
    # words: a cat sat ? | a cat , sat ? | dogs | dogs | (none) | dogs ! ! | dogs | cat
    assert found.mean_words == pytest.approx((4 + 5 + 1 + 1 + 0 + 3 + 1 + 1) / 8) and found.longest == 5
    assert found.vocabulary == 7 and found.pretrained == 2  # "cat" and "?"
    assert found.duplicates == 2 and found.two_labels == 1 and found.leaked == 1 and found.empty == 1
    cased = describe(dataset, "kim-cased")
    assert cased.vocabulary == 10 and cased.pretrained is None  # A a cat CAT Dogs dogs sat , ? !


def test_equal_texts_are_a_group():
    assert text_groups(Documents(["Good film", "bad", "good FILM.", "film good"])) == [0, 1, 0, 2]


@needs_data
@pytest.mark.parametrize(
    ("name", "tokenizer", "vocabulary", "duplicates", "two_labels", "leaked"),
    [
        ("mpqa", "kim", 6_248, 2_366, 98, 0),
        ("trec", "kim-cased", 9_592, 84, 1, 11),
        ("reuters", "kim", 23_585, 79, 4, 4),
        ("snippets", "kim", 29_258, 191, 10, 27),
    ],
)
def test_what_is_known_of_the_real_files(name, tokenizer, vocabulary, duplicates, two_labels, leaked):
    found = describe(load_dataset(name), tokenizer)
    assert found.vocabulary == vocabulary
    assert (found.duplicates, found.two_labels, found.leaked) == (duplicates, two_labels, leaked)
