import numpy as np
import pytest

from mpad import load_dataset
from mpad.data.readers import Documents
from mpad.errors import InputError
from mpad.paper.datasets.dataset import Dataset
from mpad.paper.experiments.splits import Split, split


def test_ten_folds_test_every_document_once(small_data):
    corpus = split(load_dataset("mpqa"))
    tested = np.concatenate([part.test for part in corpus.splits])
    assert len(corpus.splits) == 10 and sorted(tested.tolist()) == list(range(120))
    for part in corpus.splits:
        assert part.validation is None and not set(part.training) & set(part.test)
    again = split(load_dataset("mpqa"))
    assert all(np.array_equal(a.test, b.test) for a, b in zip(corpus.splits, again.splits, strict=True))


def test_grouped_folds_keep_equal_texts_together():
    texts = [f"word{number % 40}" for number in range(120)]
    labels = ["ab"[number % 2] for number in range(120)]
    corpus = split(Dataset("mpqa", Documents(texts, labels), Documents([], [])), grouped=True)
    assert sorted(np.concatenate([part.test for part in corpus.splits]).tolist()) == list(range(120))
    for part in corpus.splits:
        sides = [{texts[row] for row in rows} for rows in part.rows]
        assert len(sides) == 3 and all(sides)
        assert not sides[0] & sides[1] and not sides[0] & sides[2] and not sides[1] & sides[2]


def test_fixed_splits_stay_as_they_are(small_data):
    (trec,) = split(load_dataset("trec")).splits
    assert trec.training.tolist() == list(range(90)) and trec.test.tolist() == list(range(90, 120))
    (sst,) = split(load_dataset("sst2")).splits
    assert sst.validation.tolist() == list(range(80, 100)) and sst.test.tolist() == list(range(100, 120))
    with pytest.raises(InputError, match="trec has a fixed split"):
        split(load_dataset("trec"), grouped=True)


def test_a_digest_changes_with_what_is_held_out():
    labels = ["a", "b"] * 20
    rows = np.arange(40)
    one = Split(rows[:30], None, rows[30:])
    assert one.digest(labels, 0.1, seed=0) == one.digest(labels, 0.1, seed=0)
    fixed = Split(rows[:27], rows[27:30], rows[30:])
    digests = [
        one.digest(labels, 0.1, seed=0),
        one.digest(labels, 0.1, seed=1),
        one.digest(labels),
        fixed.digest(labels),
    ]
    assert len(set(digests)) == 4
