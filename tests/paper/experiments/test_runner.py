import pytest

from mpad.data.readers import Documents
from mpad.environment import precision
from mpad.paper.datasets.files import write_dataset
from mpad.paper.experiments.engines import engine_of
from mpad.paper.experiments.protocol import make_cell
from mpad.paper.experiments.records import Records
from mpad.paper.experiments.runner import Runner

QUICK = {"max_epochs": 2, "hidden": 8, "batch_size": 32}


@pytest.fixture
def runner(small_data, tmp_path):
    return Runner(Records(tmp_path / "records"), str(small_data), "cpu", QUICK)


def test_a_cell_becomes_records(runner, tmp_path):
    runner.run(make_cell("mpqa", "mpad-clique", n_folds=3))
    found = list(Records(tmp_path / "records"))
    assert [(record.fold, record.seed) for record in found] == [(0, 0), (1, 0), (2, 0)]
    for record in found:
        assert record.test_documents == 12 and 0 <= record.test_accuracy <= 1 and record.epochs == 2
        assert record.config["variant"] == "clique" and record.config["max_epochs"] == 2
        assert record.validation_accuracy == max(record.validation_curve)
        assert len(record.loss_curve) == 2 and record.seconds > 0 and record.versions["torch"] and record.commit
        assert "5 of" in record.vectors and "the rest estimates" in record.vectors


def test_what_is_recorded_is_not_run_again(runner):
    runner.run(make_cell("trec", "mpad", n_seeds=1))
    cell = make_cell("trec", "mpad", n_seeds=3)
    assert runner.missing(cell) == [(0, 1), (0, 2)]
    done = []
    runner.run(cell, done=done.append)
    assert [record.seed for record in done] == [1, 2] and runner.missing(cell) == []
    other = Runner(runner.records, runner.vectors, "cpu", {**QUICK, "max_epochs": 3})
    assert len(other.missing(cell)) == 3  # another configuration is another experiment


def test_what_an_older_engine_computed_is_run_again_only_if_asked(runner, monkeypatch):
    cell = make_cell("trec", "mpad", n_seeds=2)
    monkeypatch.setattr("mpad.paper.experiments.runner.engine_of", lambda row: 0)
    runner.run(make_cell("trec", "mpad", n_seeds=1))
    monkeypatch.setattr("mpad.paper.experiments.runner.engine_of", lambda row: 1)
    assert runner.missing(cell) == [(0, 1)] and runner.older(cell) == [(0, 0)]
    anew = Runner(runner.records, runner.vectors, "cpu", QUICK, current=True)
    assert anew.missing(cell) == [(0, 0), (0, 1)]
    anew.run(cell)
    assert [record.engine for record in runner.records] == [1, 1] and runner.older(cell) == []


def test_a_parameter_that_is_new_since_does_not_make_a_record_another(runner):
    runner.run(cell := make_cell("trec", "mpad", n_seeds=1))
    (record,) = runner.records
    del record.config["members"]
    assert runner.missing(cell) == []


def test_records_say_engine_precision_and_split(runner):
    runner.run(make_cell("mpqa", "mpad", n_folds=2))
    runner.run(make_cell("trec", "mpad", n_seeds=2))
    runner.run(make_cell("trec", "tfidf-svm"))
    found = list(runner.records)
    assert [record.engine for record in found] == [engine_of("mpad")] * 4 + [engine_of("tfidf-svm")]
    assert all(record.precision == precision("cpu") for record in found)
    assert len({record.split for record in found}) == 5  # folds, seeds that hold out other documents, nothing held out


def test_other_documents_are_another_experiment(runner):
    cell = make_cell("trec", "tfidf-svm")
    runner.run(cell)
    changed = Documents(["who is an apple", "what is a saw"] * 20, ["fruit", "tool"] * 20)
    write_dataset("trec", {"train": changed, "test": changed})
    assert Runner(runner.records, runner.vectors, "cpu", QUICK).missing(cell) == [(0, 0)]


def test_a_resumed_run_gives_what_an_uninterrupted_one_gives(small_data, tmp_path):
    at_once, resumed = (Runner(Records(tmp_path / name), str(small_data), "cpu", QUICK) for name in ("one", "two"))
    at_once.run(make_cell("trec", "mpad", n_seeds=2))
    resumed.run(make_cell("trec", "mpad", n_seeds=1))
    resumed.run(make_cell("trec", "mpad", n_seeds=2))
    for one, other in zip(at_once.records, resumed.records, strict=True):
        assert one.loss_curve == pytest.approx(other.loss_curve, abs=1e-3) and one.test_accuracy == other.test_accuracy


def test_the_dev_set_chooses_the_epoch(runner):
    runner.run(make_cell("sst2", "mpad", n_seeds=1))
    (record,) = runner.records
    assert round(record.validation_accuracy * 20, 6) % 1 == 0  # of 20 documents


def test_settings_have_records_of_their_own(runner):
    for setting in ({}, {"preset": "paper"}, {"tokenizer": "kim-cased"}, {"grouped": True}):
        runner.run(make_cell("mpqa", "mpad", n_folds=1, **setting))
    assert len(list(runner.records)) == 4


def test_the_baseline_runs_on_the_same_splits(runner):
    runner.run(make_cell("mpqa", "tfidf-svm", n_folds=2))
    found = list(runner.records)
    assert len(found) == 2 and all(record.test_accuracy > 0.6 for record in found)
    assert found[0].validation_accuracy is None and found[0].config["ngram_range"] == [1, 2]
    assert runner.missing(make_cell("mpqa", "tfidf-svm", n_folds=2)) == []


def test_an_interrupted_run_is_no_result(runner):
    def interrupt(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.run(make_cell("trec", "mpad", n_seeds=1), sink=interrupt)
    assert not list(runner.records)
