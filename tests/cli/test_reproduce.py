"""`mpad reproduce` and `mpad data`, as commands of their own."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.cli.test_cli import mpad


def lines(folder, name):
    file = folder / "records" / name
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def test_one_cell(small_data, tmp_path):
    out = tmp_path / "results"
    arguments = "reproduce table2 --dataset mpqa --variant clique --folds 2 --device cpu".split()
    done = mpad(*arguments, "--out", out)
    assert "| mpqa | mpad-clique | authors | 2 |" in done.stdout and "wrote" in done.stderr
    assert done.stderr.count("mpqa mpad-clique, authors, kim, fold") == 2
    assert [record["fold"] for record in lines(out, "mpqa/mpad-clique.jsonl")] == [0, 1]
    again = mpad(*arguments, "--out", out)
    assert "fold 0" not in again.stderr and again.stdout == done.stdout
    assert "## Table 2" in (out / "tables.md").read_text()


def test_an_interrupted_run_goes_on_where_it_stopped(small_data, tmp_path):
    """Killed without warning after its second cell."""
    out = tmp_path / "results"
    arguments = ["reproduce", "table2", "--dataset", "trec", "--model", "tfidf-svm,mpad,mpad-path", "--device", "cpu"]
    command = [sys.executable, "-c", "from mpad.cli.main import main; main()", *arguments, "--seeds", "1"]
    process = subprocess.Popen([*command, "--out", str(out)], env=dict(os.environ), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 600
    while not lines(out, "trec/mpad.jsonl") and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = {name: (out / "records" / "trec" / f"{name}.jsonl").read_text() for name in ("tfidf-svm", "mpad")}
    mpad(*arguments, "--seeds", "1", "--out", out)
    for name, text in before.items():
        assert (out / "records" / "trec" / f"{name}.jsonl").read_text() == text
    assert len(lines(out, "trec/mpad-path.jsonl")) == 1


def test_tables_and_figures_from_records_alone(small_data, tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "results"
    assert "| Polarity | 10,662 | CV |" in mpad("reproduce", "table1", "--dataset", "trec", "--out", out).stdout
    mpad("reproduce", "table2", "--dataset", "trec", "--variant", "mpad", "--seeds", "1", "--out", out)
    assert "| trec | mpad |" in mpad("reproduce", "table2", "--no-run", "--out", out).stdout
    done = mpad("reproduce", "figures", "--out", out)
    assert "learning-curves.png" in done.stderr and "figures/learning-curves.png" in (out / "tables.md").read_text()


def test_what_cannot_be_reproduced_is_told(small_data, tmp_path):
    said = mpad("reproduce", "table2", "--dataset", "imdb", "--variant", "mpad", "--out", tmp_path, check=False)
    assert said.returncode == 1 and "mpad data import imdb SOURCE" in said.stderr and "Traceback" not in said.stderr
    said = mpad("reproduce", "table2", "--dataset", "trec", "--variant", "ring", "--out", tmp_path, check=False)
    assert said.returncode == 1 and "no model 'mpad-ring'" in said.stderr


def test_data_list_import_and_check(small_data, tmp_path):
    listed = mpad("data", "list", "-f", "csv").stdout
    assert 'imdb,"film reviews, good or bad",not here' in listed and str(tmp_path / "data" / "mpqa") in listed
    source = tmp_path / "rt-polaritydata"
    source.mkdir()
    (source / "rt-polarity.pos").write_text("good film\ngood film\n")
    (source / "rt-polarity.neg").write_text("bad film\ngood film\n")
    done = mpad("data", "import", "polarity", source)
    assert "all 4 documents" in done.stderr and "mpad data check polarity" in done.stderr
    rows = [json.loads(line) for line in mpad("data", "check", "polarity", "-f", "jsonl").stdout.splitlines()]
    found = {row["what"]: row for row in rows}
    assert found["training documents"] == {
        "dataset": "polarity",
        "what": "training documents",
        "ours": 4,
        "paper": 10_662,
        "difference": "-10,658",
    }
    assert found["documents that repeat an earlier text"]["ours"] == 2
    assert found["texts with more than one label"]["ours"] == 1
    failed = mpad("data", "import", "polarity", tmp_path / "nowhere", check=False)
    assert failed.returncode == 1 and "no such file or folder" in failed.stderr
    failed = mpad("data", "import", "docstrings", source, check=False)
    assert failed.returncode == 1 and "no importer for 'docstrings'" in failed.stderr


def test_a_dataset_of_the_paper_is_data_for_every_command(small_data, tmp_path):
    mpad("fit", "trec", "--out", tmp_path / "model", "--max-epochs", "2", "--hidden", "8")
    assert "accuracy" in mpad("evaluate", tmp_path / "model", "trec").stdout
    folds_only = mpad("evaluate", tmp_path / "model", "mpqa", check=False)
    assert folds_only.returncode == 1 and "mpqa has no test part" in folds_only.stderr
