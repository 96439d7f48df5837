"""Files into a folder: exactly a row for a row, whatever happens in between."""

import csv
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mpad import inference
from mpad.errors import DataFileError, InputError
from mpad.scale import pool
from mpad.scale.columns import PredictOptions, load_column_predictor
from mpad.scale.job import Outcome, make_job, make_tasks
from mpad.scale.shards import open_shard, write_predictions
from mpad.scale.text_model import Predictions


def mpad(*arguments):
    command = [sys.executable, "-c", "from mpad.cli.main import main; main()", "predict", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=1200, env={**os.environ, "COLUMNS": "200"})


def assert_scored(model, out, texts):
    """The answers stand beside these texts, in their order."""
    table = pq.read_table(out)
    assert table["text"].to_pylist() == texts
    assert table["label"].to_pylist() == inference.load(model).predict(texts).tolist()
    assert np.allclose(table["probability"], inference.load(model).predict_proba(texts).max(1))
    return table


@pytest.fixture
def shards(tmp_path, fruit_corpus):
    """A file of each form, with its texts."""
    texts = fruit_corpus[0]
    (tmp_path / "in").mkdir()
    parts = {"a": texts[:50], "b": texts[50:70], "c": texts[70:100], "d": texts[100:]}
    numbers = {name: list(range(len(part))) for name, part in parts.items()}
    pq.write_table(pa.table({"id": numbers["a"], "text": parts["a"]}), tmp_path / "in" / "a.parquet", row_group_size=7)
    with (tmp_path / "in" / "b.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows([["id", "text"], *zip(numbers["b"], parts["b"], strict=True)])
    with gzip.open(tmp_path / "in" / "c.jsonl.gz", "wt") as file:
        for k, text in enumerate(parts["c"]):
            file.write(
                json.dumps({"id": k + (k > 20) / 2, "text": text, "tags": ["x"] * (k % 3), "odd": [k, "s"][k % 2]})
            )
            file.write("\n")
    (tmp_path / "in" / "d.txt").write_text("\n".join(parts["d"]) + "\n")
    return tmp_path / "in", parts


def test_the_command_scores_files_of_every_form_and_skips_what_is_done(model, shards, tmp_path):
    folder, parts = shards
    out = tmp_path / "out"
    done = mpad(model, folder, out, "--workers", 2)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"4 files with 120 rows written to {out}\n" and done.stdout == ""
    assert sorted(file.name for file in out.iterdir()) == [f"{name}.parquet" for name in "abcd"]
    tables = {name: assert_scored(model, out / f"{name}.parquet", part) for name, part in parts.items()}
    assert tables["a"]["id"].to_pylist() == list(range(50)) and tables["b"]["id"].to_pylist()[-1] == "19"
    assert tables["c"]["id"].type == "double" and tables["c"]["tags"].to_pylist()[2] == ["x", "x"]
    assert tables["c"]["odd"].to_pylist()[:2] == ["0", '"s"']  # no type in common: as JSON
    before = {file: file.stat().st_mtime_ns for file in out.iterdir()}
    again = mpad(model, folder, out, "--workers", 2)
    assert f"4 of 4 files are done already in {out}" in again.stderr and again.returncode == 0
    assert before == {file: file.stat().st_mtime_ns for file in out.iterdir()}
    other = mpad(model, folder, out, "--workers", 2, "--top", 2)
    assert f"4 files in {out} are from another model, other settings" in other.stderr


def test_only_the_same_input_model_and_settings_count_as_done(model, many, shards, tmp_path):
    folder, _ = shards
    tasks = make_tasks(f"{folder}/*.parquet", tmp_path / "out")
    job = make_job(model, None, PredictOptions(), None)
    assert job.score(tasks[0]).error is None and job.is_done(tasks[0])
    assert not make_job(model, None, PredictOptions(top=2), None).is_done(tasks[0])
    assert not make_job(many, None, PredictOptions(), None).is_done(tasks[0])
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    assert make_job(copy, None, PredictOptions(), None).is_done(tasks[0])  # the same model elsewhere
    os.utime(tasks[0].source)
    assert not job.is_done(tasks[0])
    tasks[0].out.write_bytes(tasks[0].out.read_bytes()[:-9])  # cut off by a full disk, or by hand
    assert not job.is_done(tasks[0])


def test_a_file_that_cannot_be_read_is_named_and_costs_no_other(model, shards, tmp_path):
    folder, parts = shards
    (folder / "b.csv").unlink()
    (folder / "b.parquet").write_bytes(b"PAR1 this is not Parquet PAR1")
    pq.write_table(pa.table({"words": ["x"]}), folder / "e.parquet")
    (folder / "f.jsonl").write_text('{"text": "a plum"}\n{"text": 7}\n')
    out = tmp_path / "out"
    done = mpad(model, folder, out, "--workers", 2)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    lines = sorted(done.stderr.splitlines())
    assert any("b.parquet: not a Parquet file that can be read" in line for line in lines)
    assert any("e.parquet: no column of text among words; name it with --text" in line for line in lines)
    assert any("f.jsonl, line 2: 'text' is not a string" in line for line in lines)
    assert "3 files with 100 rows written" in done.stderr and "3 of 6 files could not be scored" in done.stderr
    assert sorted(file.name for file in out.iterdir()) == ["a.parquet", "c.parquet", "d.parquet"]  # and nothing half
    (folder / "b.parquet").unlink()
    (folder / "f.jsonl").write_text('{"text": "a plum"}\n')
    (folder / "e.parquet").unlink()
    again = mpad(model, folder, out, "--workers", 2)
    assert "3 of 4 files are done already" in again.stderr and "1 files with 1 rows written" in again.stderr


PEAK = """
import resource, sys
from pathlib import Path
from mpad.scale.columns import ColumnPredictor, PredictOptions
from mpad.scale.shards import open_shard, write_predictions
from mpad.data.labels import Labels
from mpad.scale.text_model import Predictions
import numpy as np
class Model:
    labels, has_probabilities = Labels(np.array(["a", "b"])), True
    def predict(self, texts):
        return Predictions(["a"] * len(texts), np.ones((len(texts), 2)))
answerer = ColumnPredictor(Model(), PredictOptions())
for file in sys.argv[1:]:
    write_predictions(open_shard(Path(file), None), answerer, Path(f"{file}.out"), "key")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_memory_does_not_grow_with_the_file(tmp_path, ending):
    """A file of 100 MB, in one row group, takes hardly more than one of 12 MB."""
    for name, rows in (("small", 12_000), ("large", 100_000)):
        texts = [f"{k} " + "the of and to in " * 60 for k in range(rows)]
        path = tmp_path / f"{name}.{ending}"
        if ending == "parquet":
            table = pa.table({"text": texts})
            pq.write_table(table, path, row_group_size=rows, compression="none", use_dictionary=False)
        else:
            lines = texts if ending == "csv" else [json.dumps({"text": text}) for text in texts]
            path.write_text("\n".join(["text", *lines] if ending == "csv" else lines))
    command = [sys.executable, "-c", PEAK, *(str(tmp_path / f"{name}.{ending}") for name in ("small", "large"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=1200)
    small, large = map(int, done.stdout.split())
    assert large - small < 50


@pytest.mark.parametrize("name", ["a.parquet", "b.csv"])
def test_a_file_is_answered_a_few_thousand_rows_at_a_time(model, tmp_path, name):
    rows, path = 20_000, tmp_path / name
    texts = [f"a ripe plum {k}" for k in range(rows)]
    if name.endswith("csv"):
        path.write_text("text\n" + "\n".join(texts))
    else:
        pq.write_table(pa.table({"text": texts}), path)
    sizes = []

    def decide(texts):
        sizes.append(len(texts))
        return Predictions(["fruit"] * len(texts), np.ones((len(texts), 2)))

    answerer = load_column_predictor(model, PredictOptions())
    answerer.model.predict = decide
    shard = open_shard(path, None)
    assert write_predictions(shard, answerer, tmp_path / "out.parquet", "key") == rows == sum(sizes)
    assert max(sizes) == 2048 and pq.read_table(tmp_path / "out.parquet")["text"].to_pylist() == texts


def test_a_killed_worker_costs_nothing(model, tmp_path, fruit_corpus, monkeypatch):
    """One is killed by its process id while it works: its file is scored by another."""
    (tmp_path / "in").mkdir()
    texts = fruit_corpus[0] * 200
    for k in range(4):
        pq.write_table(pa.table({"text": texts}), tmp_path / "in" / f"{k}.parquet")
    tasks, job = make_tasks(str(tmp_path / "in"), tmp_path / "out"), make_job(model, None, PredictOptions(), None)
    killed, rounds, begin = [], [], pool._run_until_kill
    monkeypatch.setattr(pool, "_run_until_kill", lambda *work: rounds.append(work) or begin(*work))

    def kill():
        """Kill a worker as soon as one writes."""
        while not list((tmp_path / "out").glob(".*.tmp")):
            time.sleep(0.001)
        children = subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "spawn_main"], capture_output=True, text=True)
        killed.append(int(children.stdout.split()[0]))
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    outcomes = list(pool.score_files(job, tasks, 2))
    thread.join(5)
    assert killed and len(rounds) > 1 and sorted(outcome.rows for outcome in outcomes) == [len(texts)] * 4
    for task in tasks:
        assert_scored(model, task.out, texts)
    assert {file.name for file in (tmp_path / "out").iterdir()} == {task.out.name for task in tasks}


class Deadly:
    """A job whose file 1 kills whoever scores it."""

    def score(self, task):
        if task.source.stem == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        return Outcome(task, 5)


def test_a_file_that_kills_its_worker_again_and_again_is_named(tmp_path):
    for k in range(4):
        (tmp_path / f"{k}.txt").write_text("a")
    outcomes = list(pool.score_files(Deadly(), make_tasks(str(tmp_path), tmp_path / "out"), 2))
    failed = [outcome for outcome in outcomes if outcome.error]
    assert len(outcomes) == 4 and [outcome.task.source.stem for outcome in failed] == ["1"]
    assert "its worker was killed 3 times" in failed[0].error


def test_a_model_that_disappears_is_one_line(model, shards, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    job, tasks = make_job(copy, None, PredictOptions(), None), make_tasks(str(shards[0]), tmp_path / "out")
    shutil.rmtree(copy)
    outcomes = list(pool.score_files(job, tasks[:1], 1))
    assert outcomes[0].fatal and "copy: no such folder" in outcomes[0].error
    done = mpad(copy, shards[0], tmp_path / "out")
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "no such folder" in done.stderr


def test_nothing_is_written_over_that_is_not_ours_or_is_to_be_read(model, shards, tmp_path):
    folder, _ = shards
    with pytest.raises(InputError, match="is an input file and cannot be overwritten"):
        make_tasks(f"{folder}/a.parquet", folder)
    (tmp_path / "out").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "out" / "a.parquet")
    with pytest.raises(InputError, match="mpad predict did not write it"):
        make_tasks(f"{folder}/a.parquet", tmp_path / "out")
    (folder / "a.csv").write_text("text\na\n")
    with pytest.raises(InputError, match=r"a.csv and .*a.parquet would both be"):
        make_tasks(f"{folder}/a.*", tmp_path / "other")
    with pytest.raises(DataFileError, match="no file has a name like that"):
        make_tasks(f"{folder}/*.nothing", tmp_path / "other")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no data files"):
        make_tasks(str(tmp_path / "empty"), tmp_path / "other")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--workers", 2], "need a folder to write to"),
        (["OUT", "--format", "csv"], "leave out --format"),
        (["OUT", "--address", "localhost:6379"], "--address is for --engine ray"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(model, shards, tmp_path, arguments, said):
    done = mpad(model, shards[0] / "b.csv", *[tmp_path / "o" if one == "OUT" else one for one in arguments])
    assert done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1


def test_empty_files_missing_texts_and_odd_characters_keep_their_rows(model, tmp_path):
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"text": pa.array(["plum", None, "saw"])}), tmp_path / "in" / "a.parquet")
    pq.write_table(pa.table({"text": pa.array([], "string")}), tmp_path / "in" / "b.parquet")
    (tmp_path / "in" / "c.jsonl").write_text('{"text": "half \\ud83d", "n": null}\n')
    (tmp_path / "in" / "d.jsonl").write_text("")
    (tmp_path / "in" / "e.parquet").write_bytes((tmp_path / "in" / "a.parquet").read_bytes())
    job = make_job(model, None, PredictOptions(), None)
    outcomes = [job.score(task) for task in make_tasks(str(tmp_path / "in"), tmp_path / "out")]
    assert [(outcome.rows, outcome.error) for outcome in outcomes] == [(n, None) for n in (3, 0, 1, 0, 3)]
    assert pq.read_table(tmp_path / "out" / "a.parquet")["text"].to_pylist() == ["plum", None, "saw"]
    assert pq.read_table(tmp_path / "out" / "c.parquet")["text"].to_pylist() == ["half ?"]
    assert pq.read_schema(tmp_path / "out" / "d.parquet").names == ["text", "label", "probability"]


def test_many_labels_are_lists_in_the_file(many, shards, tmp_path):
    job, tasks = (
        make_job(many, None, PredictOptions(proba=True), None),
        make_tasks(f"{shards[0]}/a.parquet", tmp_path / "out"),
    )
    assert job.score(tasks[0]).error is None
    table = pq.read_table(tasks[0].out)
    model = inference.load(many)
    assert table["label"].to_pylist() == model.labels.to_names(model.predict(shards[1]["a"]))


def test_folders_of_data_below_a_folder_are_not_left_out_silently(tmp_path):
    for name in ("in/a.parquet", "in/year=2020/b.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"text": ["a plum"]}), tmp_path / name)
    with pytest.raises(InputError, match=r"folders of data files.*year=2020/b\.parquet"):
        make_tasks(str(tmp_path / "in"), tmp_path / "out")
    assert len(make_tasks(str(tmp_path / "in"), tmp_path / "in" / "year=2020")) == 1, "answers of an earlier run"
    (tmp_path / "in" / "year=2020").rename(tmp_path / "in" / "_temporary")
    assert len(make_tasks(str(tmp_path / "in"), tmp_path / "out")) == 1
