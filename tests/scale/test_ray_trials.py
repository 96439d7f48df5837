"""A search for settings over Ray's workers, one of which is killed in the middle of a trial."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mpad import MPADClassifier

pytestmark = [pytest.mark.scale, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("ray", reason="needs ray: pip install 'ray[data]'")
optuna = pytest.importorskip("optuna")


def children(pid: int) -> list[int]:
    """All processes below one."""
    below: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            below.setdefault(int(file.read_text().rpartition(")")[2].split()[1]), []).append(int(file.parts[2]))
    result, left = [], [pid]
    while left:
        left += below.get(left[0], [])
        result.append(left.pop(0))
    return result[1:]


def worker_in_a_trial(process: subprocess.Popen) -> int:
    """The id of a Ray worker that runs a trial: Ray names its workers after what they do."""
    while process.poll() is None:
        for pid in children(process.pid):
            with suppress(OSError):
                if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::_score"):
                    return pid
        time.sleep(0.01)
    raise AssertionError(process.communicate())


def test_a_killed_workers_trial_is_repeated_and_trial_0_is_the_default(fruit_corpus, tmp_path):
    rows = "".join(f'"{text}",{label}\n' for text, label in zip(*fruit_corpus, strict=True))
    (tmp_path / "d.csv").write_text(f"text,label\n{rows}")
    arguments = ["tune", tmp_path / "d.csv", "--out", tmp_path / "m", "--minutes", "5", "--trials", "3"]
    command = [*map(str, arguments), "--vectors", "none", "--device", "cpu", "--engine", "ray", "--workers", "2"]
    start = [sys.executable, "-c", "from mpad.cli.main import main; main()", *command]
    process = subprocess.Popen(start, stderr=subprocess.PIPE, text=True)
    worker = worker_in_a_trial(process)
    assert worker != process.pid
    os.kill(worker, signal.SIGKILL)
    _, said = process.communicate(timeout=2400)
    assert process.returncode == 0, said
    assert all(f"trial {k}: log-likelihood" in said for k in range(3)) and "best of 3" in said
    assert "Traceback" not in said and "(the default)" in said
    study = optuna.load_study(study_name="mpad", storage=f"sqlite:///{tmp_path / 'm.study'}")
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 3 and study.trials[0].params == {}
    assert MPADClassifier.load(tmp_path / "m").score(*fruit_corpus) > 0.9
