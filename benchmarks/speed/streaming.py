"""Memory and time of training and scoring on corpora of 1, 3 and 10 GB: `python -m benchmarks.speed.streaming`.

The text is made up: words by Zipf's law, and a class that hangs on which of some words stand beside each other, not on
which of them are there. `mpad fit --stream` and `mpad predict` run as processes of their own; once a second the
resident memory of each and of its workers is added up (PSS: what several share counts once), and their CPU time, which
is the clock here: what else a machine does meanwhile does not move it. A corpus that was made, a model that was fitted
and answers that were written are kept in the folder until the size is done, so a run that was cut off goes on.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from benchmarks.results import HERE, check_clean, measured_commit
from mpad._version import __version__

OUT = HERE / "streaming.json"
CLASSES, SIGNS, WORDS, LENGTH = 4, 8, 60_000, 300
FILE = 128 << 20  # bytes of text in a file, about


@dataclass
class Measured:
    """One command."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    curve: list[tuple[float, float]] = field(default_factory=list)  # CPU seconds so far, MB


def make_corpus(folder: Path, gigabytes: float, seed: int = 0) -> int:
    """Write Parquet files of so much text; the number of documents."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    words = np.array([f"w{k:x}" for k in range(WORDS)])
    chance = 1 / np.arange(2, WORDS + 2)
    cumulated = np.cumsum(chance / chance.sum())
    documents = written = number = 0
    while written < gigabytes * 1e9:
        texts, labels, size = [], [], 0
        while size < FILE:
            ids = np.searchsorted(cumulated, generator.random(LENGTH * 512))
            rows = words[np.minimum(ids, WORDS - 1)].reshape(512, LENGTH)
            chosen = generator.integers(CLASSES, size=512)
            for row, label in zip(rows, chosen.tolist(), strict=True):
                own = row.tolist()
                for _ in range(3):  # a first sign, and right behind it the second that makes the class
                    first = int(generator.integers(SIGNS))
                    at = int(generator.integers(LENGTH - 1))
                    own[at : at + 2] = [f"first{first}", f"second{(label - first) % CLASSES + CLASSES * (first % 2)}"]
                for _ in range(4):  # signs apart say nothing
                    own[int(generator.integers(LENGTH))] = f"second{int(generator.integers(2 * CLASSES))}"
                text = " ".join(own)
                size += len(text)
                texts.append(text)
                labels.append(f"class{label}")
        table = pyarrow.table({"text": texts, "label": labels})
        pyarrow.parquet.write_table(table, folder / f"part-{number:04d}.parquet", row_group_size=20_000)
        documents, written, number = documents + len(texts), written + size, number + 1
    return documents


def measured(command: list[str], log: Path) -> Measured:
    """Run a command, and watch its memory and that of its children."""
    start, before = time.perf_counter(), _children_cpu()
    curve: list[tuple[float, float]] = []
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
        stopped = threading.Event()

        def watch() -> None:
            while not stopped.wait(1.0):
                cpu, memory = _usage(process.pid)
                curve.append((round(cpu, 1), round(memory / 1e6, 1)))

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        code = process.wait()
        stopped.set()
        thread.join()
    if code:
        raise SystemExit(f"{' '.join(command)}: exit code {code}\n{log.read_text()[-2000:]}")
    peak = max((memory for _, memory in curve), default=0.0)
    return Measured(time.perf_counter() - start, _children_cpu() - before, peak, curve[:: max(1, len(curve) // 500)])


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _usage(pid: int) -> tuple[float, float]:
    """CPU seconds of a process and of all below it, also of those that ended; their PSS in bytes."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(after[1]), []).append(int(entry.parent.name))
        ticks[int(entry.parent.name)] = sum(map(int, after[11:15]))
    cpu, total, left = 0.0, 0.0, [pid]
    while left:
        one = left.pop()
        left += children.get(one, [])
        cpu += ticks.get(one, 0) / os.sysconf("SC_CLK_TCK")
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return cpu, total


def once(path: Path, command: list[str]) -> Measured:
    """Run a command and keep what was measured in a file; what is there already is read."""
    if not path.exists():
        path.write_text(json.dumps(asdict(measured(command, path.with_suffix(".log")))))
    return Measured(**json.loads(path.read_text()))


def draw(records: list[dict[str, object]], path: Path) -> None:
    """Memory over time, a line for each size."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    for axes, part in zip(figure.subplots(1, 2), ("fit", "predict"), strict=True):
        for record in records:
            cpu, memory = np.array(record[part]["curve"]).T  # type: ignore[index]
            axes.plot(cpu / 60, memory / 1e3, label=f"{record['gigabytes']:g} GB")
        axes.axhline(4, color="grey", linestyle=":")
        axes.set(title=f"mpad {part}", xlabel="CPU minutes", ylabel="memory of all processes (GB)", ylim=(0, None))
        axes.legend()
    figure.savefig(path, dpi=140)


def main() -> None:
    """Make, train, score, write down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[1, 3, 10])
    parser.add_argument("--folder", type=Path, default=Path(".fuzz") / "streaming")
    parser.add_argument("--epoch-documents", type=int, default=20_000)
    parser.add_argument("--max-epochs", type=int, default=4)
    given = parser.parse_args()
    check_clean()
    python = [sys.executable, "-m", "mpad"]
    before = json.loads(OUT.read_text())["records"] if OUT.exists() else []
    for gigabytes in given.gigabytes:
        folder = given.folder / f"{gigabytes:g}"
        pattern, held, made = str(folder / "text" / "*.parquet"), folder / "held", folder / "documents"
        if not made.exists():
            make_corpus(held, 0.02, seed=1)
            made.write_text(str(make_corpus(folder / "text", gigabytes)))
        documents = int(made.read_text())
        options = ["--epoch-documents", given.epoch_documents, "--max-epochs", given.max_epochs, "--vectors", "none"]
        fit = [*python, "fit", pattern, "--stream", "--cache", folder / "packed", "--out", folder / "model", *options]
        trained = once(folder / "fit.json", [str(one) for one in fit])
        predict = [*python, "predict", folder / "model", pattern, folder / "answers", "--workers", 2]
        scored = once(folder / "predict.json", [str(one) for one in predict])
        command = [*python, "evaluate", folder / "model", next(held.glob("*.parquet")), "--format", "jsonl"]
        said = subprocess.run([str(one) for one in command], capture_output=True, text=True, check=True).stdout
        accuracy = json.loads(said.splitlines()[-1])["accuracy"]
        record = {
            "gigabytes": gigabytes,
            "documents": documents,
            "accuracy": accuracy,
            "held_out": [line for line in (folder / "fit.log").read_text().splitlines() if "held-out" in line],
            "fit": asdict(trained),
            "predict": asdict(scored),
            "packed_gb": sum(file.stat().st_size for file in (folder / "packed").iterdir()) / 1e9,
            "settings": {"epoch_documents": given.epoch_documents, "max_epochs": given.max_epochs},
            "commit": measured_commit(),
            "version": __version__,
        }
        shutil.rmtree(folder)
        before = [one for one in before if one["gigabytes"] != gigabytes] + [record]
        before.sort(key=lambda one: one["gigabytes"])
        OUT.write_text(json.dumps({"records": before}, indent=1) + "\n")
        draw(before, OUT.parent.parent / "docs" / "streaming.png")
        print(f"{gigabytes:g} GB, {documents:,} documents; accuracy on new ones {accuracy:.3f}")
        for name, one in (("fit", trained), ("predict", scored)):
            print(f"  {name} {one.cpu_seconds:.0f} CPU seconds, {one.peak_mb:.0f} MB")


if __name__ == "__main__":
    main()
