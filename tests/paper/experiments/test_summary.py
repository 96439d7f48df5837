from dataclasses import replace

import pytest
from tests.paper.experiments.test_records import ONE

from mpad.paper.experiments.summary import summarise


def test_over_folds():
    records = [replace(ONE, fold=fold, test_accuracy=accuracy) for fold, accuracy in enumerate((0.7, 0.8, 0.9))]
    (found,) = summarise(records).values()
    assert found.mean == pytest.approx(80) and found.deviation == pytest.approx(10)
    assert found.error == pytest.approx(10 / 3**0.5) and found.margin == pytest.approx(4.3027 * found.error, rel=1e-4)
    assert found.validation == pytest.approx(90) and found.differs(80 - found.error) == pytest.approx(1)


def test_seeds_of_a_fold_are_no_further_folds():
    accuracies = {(0, 0): 0.6, (0, 1): 0.8, (1, 0): 0.8, (1, 1): 1.0}
    records = [replace(ONE, fold=fold, seed=seed, test_accuracy=a) for (fold, seed), a in accuracies.items()]
    (found,) = summarise(records).values()
    assert found.mean == pytest.approx(80) and found.deviation == pytest.approx(20 / 2**0.5)


def test_on_one_test_part_its_size_counts():
    """500 documents at 80 %: √(80 · 20 / 500) points, and the seeds' own scatter."""
    records = [replace(ONE, seed=seed, test_accuracy=accuracy) for seed, accuracy in enumerate((0.79, 0.81))]
    (found,) = summarise(records).values()
    assert found.error == pytest.approx((3.2 + 2 / 2) ** 0.5) and found.margin == pytest.approx(
        1.96 * found.error, rel=1e-3
    )
    (alone,) = summarise(records[:1]).values()
    assert alone.deviation == 0 and alone.error == pytest.approx((79 * 21 / 500) ** 0.5)


def test_settings_are_kept_apart():
    assert len(summarise([ONE, replace(ONE, preset="paper"), replace(ONE, grouped=True), replace(ONE, seed=1)])) == 3


def test_runs_that_a_newer_engine_lacks_are_an_older_ones():
    old = [replace(ONE, fold=fold, test_accuracy=0.8, config={"hidden": 64, "rate": 0.1}) for fold in range(3)]
    new = replace(ONE, engine=1, test_accuracy=0.5, config={"hidden": 64, "rate": "auto", "members": 1})
    (cell,) = summarise([*old, new]).values()
    assert cell.engines == (0, 1) and [record.test_accuracy for record in cell.records] == [0.5, 0.8, 0.8]
    (cell,) = summarise([*old, replace(new, config={"hidden": 32})]).values()
    assert cell.engines == (0,)  # another experiment


def test_a_fixed_value_is_another_experiment_than_auto_within_an_engine():
    fixed, auto = replace(ONE, config={"rate": 0.1}), replace(ONE, fold=1, config={"rate": "auto"})
    (cell,) = summarise([fixed, auto]).values()
    assert len(cell.records) == 1


def test_records_of_different_experiments_are_never_averaged():
    """The one with the most records stands for the cell, among equals the latest."""
    old = [replace(ONE, fold=fold, test_accuracy=0.8) for fold in range(3)]
    new = [replace(ONE, fold=fold, test_accuracy=0.6, config={"hidden": 9}, when="2021") for fold in range(2)]
    (found,) = summarise([*old, *new]).values()
    assert found.mean == pytest.approx(80) and len(found.records) == 3
    (found,) = summarise([*old, *new, replace(new[0], fold=2)]).values()
    assert found.mean == pytest.approx(60)
