import csv
import subprocess
import sys

import numpy as np
import pytest

from mpad.data.labels import Labels
from mpad.errors import InputError
from mpad.evaluate.paired import compare_saved


class Fixed:
    """A model whose predictions are given."""

    def __init__(self, predictions):
        self._predictions, self.labels_ = predictions, Labels(np.array(["a", "b"]))

    def predict(self, texts):
        return np.array(self._predictions, object)


TRUTH = ["a", "b"] * 50


def test_the_difference_counts_where_models_disagree():
    worse = ["b" if k < 20 else own for k, own in enumerate(TRUTH)]  # ten of the first twenty are wrong
    other = ["a" if k >= 98 else own for k, own in enumerate(TRUTH)]  # one is wrong
    first, second = compare_saved({"old": Fixed(worse), "new": Fixed(other)}, TRUTH, TRUTH)
    assert first.accuracy.value == 0.9 and first.difference is None and first.p_value is None
    assert second.accuracy.value == 0.99 and (second.better, second.worse) == (10, 1)
    assert second.p_value == pytest.approx(2 * (1 + 11) / 2**11)  # exact: 0 or 1 of 11, both sides
    assert second.difference.value == pytest.approx(0.09)
    assert 0 < second.difference.low < 0.09 < second.difference.high


def test_equal_models_do_not_differ():
    _, second = compare_saved({"one": Fixed(TRUTH), "two": Fixed(TRUTH)}, TRUTH, TRUTH)
    assert second.p_value == 1.0 and tuple(second.difference) == (0, 0, 0)


def test_undecided_documents_are_mistakes():
    undecided = [None, *TRUTH[1:]]
    (scores,) = compare_saved({"one": Fixed(undecided)}, TRUTH, TRUTH)
    assert scores.accuracy.value == 0.99
    with pytest.raises(InputError, match="there are none"):
        compare_saved({"one": Fixed([])}, [], [])


def test_the_command_compares_folders(fitted_flat, fruit_corpus, tmp_path):
    fitted_flat.save(tmp_path / "old")
    fitted_flat.save(tmp_path / "new")
    with (tmp_path / "test.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *zip(*fruit_corpus, strict=True)])

    def run(models):
        command = [sys.executable, "-m", "mpad", "compare", "test.csv", "--models", models, "--format", "csv"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1_200)

    rows = list(csv.DictReader(run("old,new").stdout.splitlines()))
    assert [row["model"] for row in rows] == ["old", "new"] and float(rows[1]["p"]) == 1.0
    assert "at least two different" in run("old,old").stderr
    assert "'tfidf-svm' is none" in run("old,tfidf-svm").stderr
