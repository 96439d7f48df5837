import json
from dataclasses import replace

import pytest

from mpad.errors import DataFileError
from mpad.paper.experiments.records import Record, Records

ONE = Record(
    dataset="trec",
    model="mpad",
    preset="authors",
    tokenizer="kim",
    grouped=False,
    fold=0,
    seed=0,
    validation_accuracy=0.9,
    test_accuracy=0.8,
    test_documents=500,
    epochs=3,
    best_epoch=2,
    seconds=1.5,
    together=1,
    data="0123",
    vectors="some",
    config={"hidden": 64},
    versions={"torch": "2"},
    commit="abc",
    device="cpu",
    when="2020-01-01T00:00:00+00:00",
    validation_curve=[0.5, 0.9, 0.8],
    loss_curve=[1.0, 0.5, 0.4],
)


def test_what_is_added_is_there_for_the_next(tmp_path):
    records = Records(tmp_path)
    records.add(ONE)
    records.add(replace(ONE, seed=1, model="mpad-clique"))
    again = Records(tmp_path)
    assert {record.key: record for record in again} == {record.key: record for record in records}
    assert ONE.key in again and replace(ONE, fold=3).key not in again
    assert (tmp_path / "trec" / "mpad.jsonl").read_text().count("\n") == 1


def test_the_last_line_of_a_key_counts(tmp_path):
    Records(tmp_path).add(ONE)
    Records(tmp_path).add(replace(ONE, test_accuracy=0.7))
    assert [record.test_accuracy for record in Records(tmp_path)] == [0.7]


def test_a_newer_engine_counts_wherever_its_line_stands(tmp_path):
    for one in (ONE, replace(ONE, engine=1, test_accuracy=0.7), replace(ONE, test_accuracy=0.6)):
        Records(tmp_path).add(one)
    assert [(record.engine, record.test_accuracy) for record in Records(tmp_path)] == [(1, 0.7)]


def test_a_record_from_before_engines_is_of_the_first(tmp_path):
    Records(tmp_path).add(ONE)
    file = tmp_path / "trec" / "mpad.jsonl"
    line = json.loads(file.read_text())
    file.write_text(json.dumps({k: v for k, v in line.items() if k not in ("engine", "precision", "split")}) + "\n")
    (record,) = Records(tmp_path)
    assert record == ONE and record.engine == 0 and record.split is None


def test_another_configuration_or_other_data_are_other_experiments(tmp_path):
    records = Records(tmp_path)
    for record in (ONE, replace(ONE, config={"hidden": 128}), replace(ONE, data="4567")):
        records.add(record)
    assert len(list(Records(tmp_path))) == 3


def test_a_line_that_was_cut_is_run_again_and_spoils_no_other(tmp_path):
    records = Records(tmp_path)
    records.add(ONE)
    records.add(replace(ONE, seed=1))
    file = tmp_path / "trec" / "mpad.jsonl"
    file.write_text(file.read_text()[:-40])
    cut = Records(tmp_path)
    assert [record.seed for record in cut] == [0]
    cut.add(replace(ONE, seed=1))
    assert [record.seed for record in Records(tmp_path)] == [0, 1]


def test_a_record_of_another_shape_is_told(tmp_path):
    (tmp_path / "trec").mkdir()
    (tmp_path / "trec" / "mpad.jsonl").write_text(json.dumps({"dataset": "trec"}) + "\n")
    with pytest.raises(DataFileError, match=r"mpad.jsonl, line 1: not a record"):
        Records(tmp_path)
    (tmp_path / "trec" / "mpad.jsonl").write_text("<<<<<<< HEAD\n")
    with pytest.raises(DataFileError, match=r"mpad.jsonl, line 1: not a record"):
        Records(tmp_path)
