"""Training by several processes, started by torchrun."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.training.conftest import QUICK

from mpad import MPADClassifier
from mpad.training.stream import StreamOptions

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
EPOCHS = 2  # of the comparison with one process


def command(files, tmp_path, *more, epochs=4):
    """`mpad fit` with the settings of QUICK."""
    fit = ["-m", "mpad", "fit", files, "--cache", tmp_path / "cache2", "--vectors", "none", "--hidden", 8]
    fit += ["--batch-size", 16, "--learning-rate", 0.001, "--max-epochs", epochs, "--device", "cpu", "--seed", 0]
    return [str(one) for one in [*TORCHRUN, *more, *fit, "--out", tmp_path / "m", "--resume"]]


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=2400, **options)


@pytest.fixture
def one_process(files, tmp_path):
    """The model of one process that reads two lanes."""
    settings = {**QUICK, "vector_size": 100, "learning_rate": 0.001, "max_epochs": EPOCHS}
    options = StreamOptions(cache=tmp_path / "cache1", workers=1, lanes=2)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as torchrun's processes: sums in the same order
    with pytest.MonkeyPatch.context() as patch:  # several processes run the plain forwards
        patch.setenv("MPAD_KERNELS", "off")
        model = MPADClassifier(**settings).fit_stream(files, options=options)
    torch.set_num_threads(threads)
    return model


def test_two_processes_make_the_model_of_one_with_the_same_batches(files, tmp_path, fruit_corpus, one_process):
    """Weights agree to 1e-4 and probabilities to 1e-3 after two epochs; rounding grows later, where a ReLU flips.

    One bias is left out: a batch norm removes it, so its gradient is rounding, of which Adam makes steps.
    """
    done = run(command(files, tmp_path, epochs=EPOCHS))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("saved to") == 1 and "120 documents, 2 classes" in done.stderr, "the first alone says so"
    two = MPADClassifier.load(tmp_path / "m", device="cpu")
    own, other = (model.model_.network.state_dict() for model in (two, one_process))
    assert own.keys() == other.keys()
    for name in own.keys() - {name for name in own if name.endswith((".dense.bias", "readout.norm.running_mean"))}:
        np.testing.assert_allclose(own[name], other[name], atol=1e-4, err_msg=name)
    texts = fruit_corpus[0]
    np.testing.assert_allclose(two.predict_proba(texts), one_process.predict_proba(texts), atol=1e-3)
    for one, same in zip(two.history_, one_process.history_, strict=True):
        assert one.validation_accuracy == same.validation_accuracy and one.is_best == same.is_best
        assert one.train_loss == pytest.approx(same.train_loss, abs=1e-4)


def children(pid):
    listed = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True).stdout.split()
    return [int(one) for one in listed]


def wait_for(condition, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_a_process_that_dies_stops_the_others_and_the_run_goes_on(files, tmp_path, fruit_corpus):
    """One of two is killed in the middle: the other ends with a message, torchrun begins anew, training resumes."""
    started = subprocess.Popen(
        command(files, tmp_path, "--max-restarts", "1", epochs=15),
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        wait_for(lambda: (tmp_path / "m.checkpoint").exists() or started.poll() is not None)
        victims = children(started.pid)
        os.kill(victims[-1], signal.SIGKILL)
        _, said = started.communicate(timeout=1800)
    finally:
        if started.poll() is None:
            started.kill()
    assert started.returncode == 0, said
    assert "another process of this training has ended" in said or "another of its processes is gone" in said
    epochs = [int(line.split()[1].split("/")[0]) for line in said.splitlines() if line.startswith("epoch")]
    again = [k for k in range(1, len(epochs)) if epochs[k] <= epochs[k - 1]]
    assert all(epochs[k] > 1 for k in again), "it went on, and did not begin with the first epoch"
    assert MPADClassifier.load(tmp_path / "m", device="cpu").n_iter_ == 15


def test_no_stream_is_refused_where_several_processes_train(files, tmp_path):
    env = {**environment(), "WORLD_SIZE": "2", "RANK": "0"}
    fit = [sys.executable, "-m", "mpad", "fit", files, "--no-stream", "--out", str(tmp_path / "m")]
    done = subprocess.run(fit, capture_output=True, text=True, env=env)
    assert done.returncode == 1 and "leave --no-stream out" in done.stderr
