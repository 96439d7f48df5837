"""Cost against the length of one document: raw text → probabilities, each length in a process of its own."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.corpus import MADE_UP, one_document
from benchmarks.results import Row
from benchmarks.speed.measure import ROUNDS, spread
from benchmarks.speed.memory import peak_mb

_LENGTHS = (1_000, 10_000, 100_000, 1_000_000)


def run() -> list[Row]:
    """1,000 to 1,000,000 words: a constant time a word is linear cost."""
    from benchmarks.speed.answering import save_random_model

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save_random_model([one_document(_LENGTHS[-1])], path)
        return [_row(path, n_words) for n_words in _LENGTHS]


def _row(path: Path, n_words: int) -> Row:
    command = [sys.executable, "-m", "benchmarks.speed.scaling", str(path), str(n_words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return Row(
        f"one document of {n_words:,} words ({found['nodes']:,} nodes)",
        f"{1000 * found['seconds']:.1f} ms, {found['peak']:.0f} MB at most",
        target="under 2 s and 1 GB" if n_words == _LENGTHS[-1] else "",
        note=f"{1e6 * found['seconds'] / n_words:.2f} µs a word; one thread; the NumPy runtime",
        spread=f"{spread([1000 * one for one in found['times']], '.1f')} ms",
        text=MADE_UP,
    )


def _answer(path: str, n_words: int) -> dict[str, Any]:
    from mpad import inference

    model, text, times = inference.load(path), one_document(n_words), []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        model.predict_proba([text])
        times.append(time.perf_counter() - start)
    seconds = statistics.median(times)
    return {"seconds": seconds, "times": times, "peak": peak_mb(), "nodes": len(model.pack([text]).words)}


if __name__ == "__main__":
    import os

    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported
    print(json.dumps(_answer(sys.argv[1], int(sys.argv[2]))))
