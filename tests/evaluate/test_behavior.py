"""Minimal pairs: what a bag of words cannot do, and what a model that reads negation can."""

from collections import Counter

import numpy as np
import pytest

from mpad.errors import InputError
from mpad.evaluate.behavior import CATEGORIES, check_behavior, minimal_pairs
from mpad.evaluate.calibration import Calibration, plot_evaluation
from mpad.text.tokenizer import KimTokenizer


def test_two_hundred_different_pairs():
    pairs = minimal_pairs()
    assert len(pairs) == 200 == len({(pair.positive, pair.negative) for pair in pairs})
    assert Counter(pair.category for pair in pairs) == dict.fromkeys(CATEGORIES, 50)
    words = KimTokenizer().words
    for pair in pairs:
        same = Counter(words(pair.positive)) == Counter(words(pair.negative))
        assert same == (pair.category == "word order") or pair.category == "contrast"


def bag(texts):
    """A model that counts good and bad words, and knows nothing of their order."""
    known, words = {"good", "great", "excellent", "brilliant"}, KimTokenizer().words
    good = np.array([sum(word in known for word in words(text)) for text in texts])
    p = 1 / (1 + np.exp(-good.astype(float)))
    return np.stack([1 - p, p], axis=1)


def test_a_bag_of_words_fails_where_order_counts():
    rows = {row.category: row for row in check_behavior(["neg", "pos"], bag)}
    assert (
        rows["word order"].right == 0
        and rows["all"].pairs == 200
        and rows["all"].interval.high - rows["all"].interval.low < 0.2
    )
    assert rows["word order"].ties == 1 and rows["negation"].both == 0 and rows["intensifiers"].both is None


def test_the_positive_class_is_said_known_or_asked_for():
    def swapped(texts):
        return bag(texts)[:, ::-1]

    whole = check_behavior(["neg", "pos"], bag)
    assert check_behavior(["pos", "neg"], swapped) == check_behavior(["x", "y"], bag, "y") == whole
    assert check_behavior(["up", "down"], swapped) == whole
    with pytest.raises(InputError, match="this one has 3"):
        check_behavior(["a", "b", "c"], bag)
    with pytest.raises(InputError, match="no class 'z'"):
        check_behavior(["x", "y"], bag, "z")


def test_calibration(tmp_path):
    confidence = np.repeat([0.55, 0.95], [100, 100])
    right = np.concatenate([np.arange(100) < 55, np.arange(100) < 75])
    calibration = Calibration(confidence, right)
    assert calibration.error == pytest.approx((0 + 0.2) / 2)
    shares, accuracy = calibration.coverage()
    assert shares[-1] == 1 and accuracy[-1] == pytest.approx(0.65) and accuracy[9] == pytest.approx(0.75)
    pytest.importorskip("matplotlib")
    plot_evaluation(tmp_path / "p.png", ["a", "b"], np.array([[5, 1], [0, 3]]), calibration)
    plot_evaluation(tmp_path / "q.png", ["a", "b"], np.array([[5, 1], [0, 3]]), None)
    assert (tmp_path / "p.png").stat().st_size > (tmp_path / "q.png").stat().st_size > 1000
