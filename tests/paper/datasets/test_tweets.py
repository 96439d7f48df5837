from collections import Counter

from mpad.data.equal_texts import text_key
from mpad.paper.datasets import load_dataset


def test_the_tweets_are_the_same_everywhere():
    dataset = load_dataset("tweets")
    assert (len(dataset.train), len(dataset.test)) == (2_738, 694)
    assert Counter(dataset.test.labels) == {"positive": 466, "negative": 228}
    assert dataset.classes == ["negative", "positive"] and not dataset.cross_validated


def test_copies_are_on_one_side():
    dataset = load_dataset("tweets")
    assert not {text_key(text) for text in dataset.train.texts} & {text_key(text) for text in dataset.test.texts}
