"""`mpad fit` killed at random moments and resumed each time, against one that nobody disturbed."""

import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file


def kill_and_resume(kills: int, seed: int = 0) -> dict[str, object]:
    """Train once in peace and once under fire; whether the weights are the same to the last bit."""
    generator = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _write_data(root / "d.csv", generator)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import mpad.estimator.classifier"], check=True)
        starting = time.perf_counter() - start
        assert _fit(root, "peace").wait() == 0
        alone = time.perf_counter() - start - starting
        longest = starting + 2 * (alone - starting) / kills  # so that all kills come before it is done
        done = 0
        while done < kills:
            process = _fit(root, "fire", "--resume")
            try:
                process.wait(generator.uniform(0.0, longest))
                break  # it was done before its kill came
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                done += 1
        assert _fit(root, "fire", "--resume").wait() == 0
        one, other = (load_file(root / name / "model.safetensors") for name in ("peace", "fire"))
        same = one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)
        left = sorted(path.name for path in root.iterdir() if path.name.startswith(".") or "checkpoint" in path.name)
    return {"kills": done, "identical": bool(same), "left behind": left, "seconds alone": round(alone, 1)}


def _fit(root: Path, out: str, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from mpad.cli.main import main; main()", "fit", str(root / "d.csv")]
    options = ["--out", str(root / out), "--max-epochs", "60", "--patience", "60", "--device", "cpu", *more]
    return subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)


def _write_data(file: Path, generator: random.Random) -> None:
    words = [f"word{k}" for k in range(3000)]
    rows = []
    for number in range(3000):
        label = "ab"[number % 2]
        text = generator.choices(words, k=20)
        text[generator.randrange(20)] = f"sign{label}{generator.randrange(30)}"
        rows.append(f"{' '.join(text)},{label}\n")
    file.write_text("text,label\n" + "".join(rows))
