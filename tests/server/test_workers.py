"""Several processes on one socket."""

import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.server.conftest import ask, running, until, workers_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
WORDS, WIDTH = 60_000, 300  # vectors of 36 MB


@pytest.fixture(scope="module")
def large(fruit_corpus, tmp_path_factory):
    """A model whose word vectors outweigh all else."""
    from mpad import MPADClassifier

    root = tmp_path_factory.mktemp("large")
    words = [*"apple pear plum hammer saw drill the a of".split(), *(f"word{k}" for k in range(WORDS))]
    rows = np.random.default_rng(0).standard_normal((len(words), WIDTH)).astype(np.float32)
    np.savez(root / "vectors.npz", words=np.array(words), vectors=rows)
    options = {"hidden": 8, "max_epochs": 1, "random_state": 0, "device": "cpu", "extra_words": WORDS}
    MPADClassifier(vectors=str(root / "vectors.npz"), **options).fit(*fruit_corpus).save(root / "model")
    assert (root / "model" / "model.safetensors").stat().st_size > 2 * WORDS * WIDTH
    return root / "model"


def mapped(pid, folder):
    """Bytes of a folder's weights that a process has mapped, and of these how many are its own; its share in all."""
    lines = Path(f"/proc/{pid}/smaps").read_text().splitlines()
    own, size, within = 0, 0, False
    for line in lines:
        if "-" in line.split()[0]:
            within = line.endswith(str(folder / "model.safetensors"))
        elif within and line.startswith("Rss:"):
            size += int(line.split()[1]) << 10
        elif within and line.startswith(("Private_Clean:", "Private_Dirty:")):
            own += int(line.split()[1]) << 10
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return size, own, int(rollup.partition("\nPss:")[2].split()[0]) << 10


def rss(pid):
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0]) << 10


def test_workers_hold_the_vectors_once(large):
    with running(str(large), "--quiet", "--workers", "2") as (address, process):
        assert ask(address, body={"texts": "an apple"})["predictions"]
        one, other = workers_of(process)
        vectors = 2 * WORDS * WIDTH
        for pid in (one, other):
            size, own, share = mapped(pid, large)
            assert size >= vectors and own < 1 << 20  # all of it in memory, hardly any of it in this process alone
            assert share < rss(pid) - vectors // 2 + (8 << 20)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all(folders, sent):
    with running(folders[0], "--quiet", "--workers", "2") as (address, process):
        ids = workers_of(process)
        assert len(ids) == 2 and ask(address, body={"texts": "a"})["predictions"]
        process.send_signal(sent)
        assert process.wait(1200) == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in ids)


def test_what_was_begun_is_answered_before_the_end(folders):
    with running(folders[0], "--quiet", "--workers", "2") as (address, process):
        ask(address, "/explain", {"text": "warm up"})
        text, answers = " ".join(f"word{k} apple" for k in range(300)), []
        asking = [
            threading.Thread(target=lambda: answers.append(ask(address, "/explain", {"text": text}))) for _ in range(4)
        ]
        for thread in asking:
            thread.start()
        threading.Event().wait(0.3)
        process.send_signal(signal.SIGTERM)
        for thread in asking:
            thread.join(1200)
        assert [answer["label"] for answer in answers] == [answers[0]["label"]] * 4 and process.wait(1200) == 0


def test_a_worker_that_dies_is_replaced(folders):
    with running(folders[0], "--quiet", "--workers", "2") as (address, process):
        first, second = workers_of(process)
        os.kill(first, signal.SIGKILL)
        assert "worker" in (line := process.stderr.readline()) and str(first) in line and "(-9)" in line
        assert until(lambda: len(workers_of(process)) == 2) and first not in workers_of(process)
        assert second in workers_of(process)
        for _ in range(20):
            assert ask(address, body={"texts": "a"})["predictions"]


def test_workers_end_with_a_parent_that_is_killed(folders):
    with running(folders[0], "--quiet", "--workers", "2") as (_, process):
        ids = workers_of(process)
        process.kill()
        process.wait(1200)
        assert until(lambda: not any(alive(pid) for pid in ids))


def alive(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_model_that_cannot_be_loaded_is_told_once(tmp_path, folders):
    import subprocess

    serve = [sys.executable, "-c", "from mpad.cli.main import main; main()", "serve", "--port", "0", "--workers", "3"]
    result = subprocess.run([*serve, str(tmp_path / "nothing")], capture_output=True, text=True, timeout=600)
    assert result.returncode == 1 and result.stderr.count("\n") == 1 and "no such folder" in result.stderr


def test_limits_hold_in_workers(folders):
    with running(folders[0], "--quiet", "--workers", "2", "--request-timeout", "1") as (address, _):
        import socket

        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=200) as connection:
            connection.sendall(b"POST /predict HT")
            assert connection.recv(1000).startswith(b"HTTP/1.1 408 ")
