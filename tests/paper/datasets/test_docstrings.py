import re
from collections import Counter

import pytest

from mpad import load_dataset
from mpad.paper.datasets.docstrings import AREAS, _prose


@pytest.fixture(scope="module")
def dataset():
    return load_dataset("docstrings")


def test_size(dataset):
    counts = Counter([*dataset.train.labels, *dataset.test.labels])
    assert len(counts) >= 8 and sum(counts.values()) >= 1500 and min(counts.values()) >= 20
    assert dataset.classes == sorted(AREAS)
    assert 0.15 < len(dataset.test) / (len(dataset.test) + len(dataset.train)) < 0.25


def test_no_document_twice(dataset):
    texts = [*dataset.train.texts, *dataset.test.texts]
    assert len(set(texts)) == len(texts)


def test_the_label_cannot_be_read_off_the_text(dataset):
    """Guessing the label whose own name stands in the text is right for under a fifth of the documents."""
    texts, labels = [*dataset.train.texts, *dataset.test.texts], [*dataset.train.labels, *dataset.test.labels]
    modules = {area: [part for name in names for part in name.split(".")] for area, names in AREAS.items()}
    right = 0
    for text, label in zip(texts, labels, strict=True):
        words = set(re.findall(r"\w+", text.lower()))
        guesses = [area for area in AREAS if words & {*area.split(), *modules[area], area.rstrip("s")}]
        right += guesses == [label]
    assert right < len(texts) / 5


def test_loading_again_gives_the_same(dataset):
    assert load_dataset("docstrings") == dataset


def test_prose_drops_examples_paths_and_giveaways():
    doc = "Compute the mean.\n\nUses scipy.stats.norm and masked arrays.\n\nExamples\n--------\n>>> 1 + 1\n2\n"
    assert _prose(doc) == "Compute the mean. Uses and ."
