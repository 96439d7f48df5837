"""The page of faithfulness is computed from its records."""

import json

import numpy as np
import pytest
from benchmarks.accuracy import faithfulness
from benchmarks.accuracy.faithfulness_page import Estimate, difference, gains, over_datasets, over_documents, page
from scipy.stats import t


def made_up(dataset, seed, by_method):
    """A record of two documents, with the gains of each method."""
    units = {
        name: {"deletion": 0.1, "insertion": 0.9, "seconds": 0.01, "gains": own} for name, own in by_method.items()
    }
    pairs = {"documents": 2, "linear": 0.25, "model": 0.5, "network": -0.1, "changed": 0.0}
    head = {"dataset": dataset, "setting": "best", "seed": seed, "trained": 9, "tested": 2, "accuracy": 0.5}
    return {**head, "units": {"word": {**units, "random order": units["attention"]}}, "pairs": pairs}


RECORDS = [
    made_up("first", 0, {"gradients": [0.5, 0.7], "occlusion by word": [0.4, 0.7], "attention": [0.1, 0.1]}),
    made_up("first", 1, {"gradients": [0.5, 0.9], "occlusion by word": [0.4, 0.8], "attention": [0.1, 0.1]}),
    made_up("second", 0, {"gradients": [0.3, 0.3], "occlusion by word": [0.3, 0.1], "attention": [0.1, 0.1]}),
]


def test_documents_and_seeds_both_count_in_an_interval():
    values = np.array([[1.0, 2.0, 3.0], [3.0, 4.0, 8.0]])
    variance = np.var([2.0, 3.0, 5.5], ddof=1) / 3 + np.var([2.0, 5.0], ddof=1) / 2
    assert over_documents(values) == pytest.approx((3.5, t.ppf(0.975, 2) * variance**0.5))
    assert over_documents(values[:1])[1] == pytest.approx(t.ppf(0.975, 2) * (1 / 3) ** 0.5)


def test_differences_are_paired_and_every_dataset_counts_once():
    by = gains(RECORDS, "word")
    assert by["first"]["gradients"].shape == (2, 2)
    mean, half = difference(by, "gradients", "occlusion by word")
    assert mean == pytest.approx((0.075 + 0.1) / 2) and half == pytest.approx(over_datasets([0.075, 0.1]).half)


def test_a_tie_is_what_chance_explains_or_what_is_too_small_to_matter():
    assert Estimate(0.05, 0.04).clear and not Estimate(0.05, 0.06).clear and not Estimate(0.009, 0.001).clear
    assert Estimate(-0.05, 0.04).clear


def test_the_page_says_what_the_records_say():
    text = page(RECORDS)
    assert "| first | 0.650 ± " in text and "Gradients and occlusion by word: a tie." in text
    assert "| first | 2 | 25 | 50 | -10 | 0 |" in text and "### Sentences" not in text
    better = [
        made_up(name, 0, {"gradients": [0.5, 0.5], "occlusion by word": [0.3, 0.3], "attention": [0, 0]})
        for name in "abc"
    ]
    assert "Gradients before occlusion by word, by 0.200." in page(better)


def test_the_committed_page_is_computed_from_the_committed_records():
    records = faithfulness.read(faithfulness.FILE)
    assert faithfulness.PAGE.read_text() == page(list(records.values()))
    for record in records.values():
        assert record["commit"] and not record["commit"].endswith("+") and record["versions"] and record["config"]


def test_a_line_that_was_cut_is_run_again(tmp_path):
    lines = [json.dumps(record) for record in RECORDS]
    (tmp_path / "records.jsonl").write_text("\n".join([*lines, lines[0][:50]]))
    assert list(faithfulness.read(tmp_path / "records.jsonl")) == [
        ("best", "first", 0),
        ("best", "first", 1),
        ("best", "second", 0),
    ]
    assert faithfulness.read(tmp_path / "nothing") == {}
