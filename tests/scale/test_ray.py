"""On a real Ray cluster on this machine, with workers killed in the middle."""

import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mpad import inference
from mpad.scale import Predictor

pytestmark = [pytest.mark.scale, pytest.mark.filterwarnings("ignore")]
ray = pytest.importorskip("ray", reason="needs ray: pip install 'ray[data]'")

COMMAND = [sys.executable, "-c", "from mpad.cli.main import main; main()", "predict"]


@pytest.fixture(scope="module")
def shards(tmp_path_factory, fruit_corpus):
    folder = tmp_path_factory.mktemp("ray") / "in"
    folder.mkdir()
    texts = fruit_corpus[0] * 400
    for k in range(6):
        pq.write_table(pa.table({"id": range(len(texts)), "text": texts[k:] + texts[:k]}), folder / f"{k}.parquet")
    return folder, texts


def assert_exact(model, folder, out):
    for file in sorted(folder.glob("*.parquet")):
        source, table = pq.read_table(file), pq.read_table(out / file.name)
        assert table.select(["id", "text"]).equals(source)
        texts = source["text"].to_pylist()
        assert table["label"].to_pylist() == inference.load(model).predict(texts).tolist()
        assert np.allclose(table["probability"], inference.load(model).predict_proba(texts).max(1))
    assert {file.name for file in out.iterdir()} >= {file.name for file in folder.glob("*.parquet")}


def holder(file: Path) -> int | None:
    """The process that has a file open."""
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if descriptor.readlink() == file:
                return int(descriptor.parts[2])
    return None


def wait_for_writer(out: Path, process: subprocess.Popen) -> int:
    """The id of a worker that is writing answers."""
    while process.poll() is None:
        for file in out.glob(".*.tmp"):
            if pid := holder(file):
                return pid
        time.sleep(0.005)
    raise AssertionError(process.communicate())


def test_a_killed_worker_costs_nothing(model, shards, tmp_path):
    folder, out = shards[0], tmp_path / "out"
    arguments = [str(model), f"{folder}/*.parquet", str(out), "--engine", "ray", "--workers", "2"]
    process = subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE, text=True)
    worker = wait_for_writer(out, process)
    assert worker != process.pid
    os.kill(worker, signal.SIGKILL)
    _, said = process.communicate(timeout=1800)
    assert process.returncode == 0, said
    assert f"6 files with {6 * len(shards[1]):,} rows written" in said and "Traceback" not in said
    assert_exact(model, folder, out)
    again = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=600)
    assert "6 of 6 files are done already" in again.stderr and again.returncode == 0


def test_a_file_that_cannot_be_read_is_named_and_costs_no_other(model, shards, tmp_path):
    (tmp_path / "in").mkdir()
    for k in range(2):
        (tmp_path / "in" / f"{k}.parquet").write_bytes((shards[0] / f"{k}.parquet").read_bytes())
    (tmp_path / "in" / "bad.parquet").write_bytes(b"not Parquet at all")
    arguments = [model, tmp_path / "in", tmp_path / "out", "--engine", "ray", "--workers", "1"]
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 1 and "bad.parquet: not a Parquet file" in done.stderr and "Traceback" not in done.stderr
    (tmp_path / "in" / "bad.parquet").unlink()
    assert_exact(model, tmp_path / "in", tmp_path / "out")


def test_a_cluster_that_is_not_there_is_one_line(model, shards, tmp_path):
    arguments = [model, shards[0], tmp_path / "out", "--engine", "ray", "--address", "127.0.0.1:6"]
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "Ray, 127.0.0.1:6: no cluster answers there" in done.stderr


def processes_of(port: int) -> list[int]:
    """All processes of the cluster with that port."""
    result = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if re.search(rf"gcs-address=[\w.]+:{port}\b|gcs_server_port={port}\b", file.read_text()):
                result.append(int(file.parts[2]))
    return result


def test_a_cluster_that_goes_away_is_said_and_what_is_done_stays(model, shards, tmp_path):
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        port = opened.getsockname()[1]
    own = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}  # of this cluster alone
    options = ["--head", "--node-ip-address=127.0.0.1", f"--port={port}", "--num-cpus=1", "--include-dashboard=false"]
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", *options, "--disable-usage-stats"]
    subprocess.run(start, env=own, check=True, capture_output=True, timeout=600)
    try:
        out = tmp_path / "out"
        arguments = [model, shards[0], out, "--engine", "ray", "--address", f"127.0.0.1:{port}"]
        process = subprocess.Popen([*COMMAND, *map(str, arguments)], env=own, stderr=subprocess.PIPE, text=True)
        while not list(out.glob("*.parquet")) and process.poll() is None:
            time.sleep(0.01)
    finally:
        for pid in processes_of(port):
            if pid != process.pid:
                os.kill(pid, signal.SIGKILL)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 1 and said.splitlines()[-1].startswith("mpad: Ray, 127.0.0.1:")
    assert "the cluster is gone; finished files are kept" in said and "Traceback" not in said
    assert 1 <= len(list(out.glob("*.parquet"))) < 6


@pytest.fixture(scope="module")
def cluster():
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="CRITICAL")
    yield
    ray.shutdown()


@pytest.mark.parametrize("form", ["numpy", "pandas", "pyarrow"])
def test_ray_data_maps_batches_of_every_form_with_it(model, many, fruit_corpus, cluster, form):
    ray.data.DataContext.get_current().enable_progress_bars = False
    texts = fruit_corpus[0]
    data = ray.data.from_arrow(pa.table({"id": range(len(texts)), "text": texts}))
    answered = data.map_batches(Predictor(model), batch_size=50, batch_format=form).take_all()
    rows = sorted(answered, key=lambda row: row["id"])
    assert [row["text"] for row in rows] == texts
    assert [row["label"] for row in rows] == inference.load(model).predict(texts).tolist()
    tagged = data.map_batches(Predictor(many), batch_size=50, batch_format=form).take_all()
    expected = inference.load(many).labels.to_names(inference.load(many).predict(texts))
    assert [list(row["label"]) for row in sorted(tagged, key=lambda row: row["id"])] == expected


def test_an_actor_pool_takes_the_class_itself(model, fruit_corpus, cluster):
    ray.data.DataContext.get_current().enable_progress_bars = False
    data = ray.data.from_items([{"text": text} for text in fruit_corpus[0]])
    pool = ray.data.ActorPoolStrategy(size=1)
    answered = data.map_batches(Predictor, fn_constructor_args=[str(model)], compute=pool, batch_size=30).take_all()
    assert len(answered) == len(fruit_corpus[0]) and {row["label"] for row in answered} == {"fruit", "tool"}
