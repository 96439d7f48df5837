"""`python -m benchmarks.speed.engines`: what an engine costs beside the bare runtime; writes engines.json.

Made-up documents of 20 words in Parquet files; a worker for each core. The yardstick is `mpad.inference` alone, in as
many processes at once, with all texts in memory. An engine reads the files and writes them anew with their answers: the
whole command is timed, and once more over a few rows, which is its start-up. In turn, medians of the rounds.

Twice per core: by the clock, which counts cores that wait or that others use (let nothing else run on the machine), and
by the CPU seconds of all processes that the command started, Ray's and Java's own included.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pyarrow
import pyarrow.parquet

from benchmarks import results
from benchmarks.corpus import MADE_UP, short_documents
from benchmarks.processes import sample
from benchmarks.results import Row
from benchmarks.speed.answering import save_random_model
from benchmarks.speed.measure import ROUNDS

_FILES = 16
_SAMPLED = 0.05  # seconds between looks at the processes of a command
_COMMAND = [sys.executable, "-c", "from mpad.cli.main import main; main()", "predict"]


@dataclass(frozen=True)
class Cost:
    """Seconds."""

    wall: float
    cpu: float


def main() -> None:
    """Time all engines that are installed, in turn, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=640_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.part:
        {"bare": _bare, "spark": _spark}[asked.part[0]](*asked.part[1:])
        return
    results.check_clean()
    with tempfile.TemporaryDirectory() as folder:
        rows = _measure(Path(folder), asked.documents, asked.rounds)
        results.write({"Engines": results.on(MADE_UP, rows)}, "engines")


def _measure(folder: Path, documents: int, rounds: int) -> list[Row]:
    cores = len(os.sched_getaffinity(0))
    model = folder / "model"
    texts = short_documents(min(documents, 100_000)).texts
    save_random_model(texts, model)
    _write(folder / "all", texts, documents)
    _write(folder / "few", texts, 10 * _FILES)
    engines: dict[str, Callable[[Path, Path], list[object]]] = {
        "workers": lambda data, out: [*_COMMAND, model, data, out, "--workers", cores]
    }
    if find_spec("ray"):
        engines["ray"] = lambda data, out: [*_COMMAND, model, data, out, "--workers", cores, "--engine", "ray"]
    if find_spec("pyspark"):
        engines["spark"] = lambda data, out: _part("spark", model, data, out, cores)
    bare: list[Cost] = []
    whole: dict[str, list[Cost]] = {name: [] for name in engines}
    start: dict[str, list[Cost]] = {name: [] for name in engines}
    for number in range(rounds):
        bare.append(_bare_cost(model, folder / "all", cores))
        for name, engine in engines.items():
            start[name].append(_cost(engine(folder / "few", folder / f"few-{name}-{number}")))
            whole[name].append(_cost(engine(folder / "all", folder / f"all-{name}-{number}")))
            _check_complete(folder / f"all-{name}-{number}", documents)
    rows = []
    for clock, divided in (("wall", cores), ("cpu", 1)):
        by = "by the clock" if clock == "wall" else "by CPU seconds"
        yardstick = [documents / getattr(cost, clock) / divided for cost in bare]
        shown = f"{statistics.median(yardstick):,.0f}"
        rows.append(
            Row(f"{by}: bare runtime, {cores} processes", f"{shown} a second", note=f"rounds: {_listed(yardstick)}")
        )
        for name in engines:
            named = name if name == "workers" else f"{name} {version('pyspark' if name == 'spark' else name)}"
            took = [getattr(cost, clock) for cost in whole[name]]
            before = [getattr(cost, clock) for cost in start[name]]
            apart = [documents / (w - s) / divided for w, s in zip(took, before, strict=True)]
            included = [documents / w / divided for w in took]
            with_start = f"start-up of {statistics.median(before):.1f} s included"
            for said, rates, target in (("start-up apart", apart, "0.7"), (with_start, included, "")):
                ratio = statistics.median(ours / theirs for ours, theirs in zip(rates, yardstick, strict=True))
                figures = f"{statistics.median(rates):,.0f} a second", shown, ratio, target
                rows.append(Row(f"{by}: {named}, {said}", *figures, f"rounds: {_listed(rates)}"))
    return rows


def _write(folder: Path, texts: list[str], documents: int) -> None:
    folder.mkdir()
    each = documents // _FILES
    for k in range(_FILES):
        chosen = [texts[(k * each + n) % len(texts)] for n in range(each)]
        pyarrow.parquet.write_table(pyarrow.table({"text": chosen}), folder / f"{k:02}.parquet")


def _check_complete(out: Path, documents: int) -> None:
    rows = sum(pyarrow.parquet.read_metadata(file).num_rows for file in out.glob("*.parquet"))
    assert rows == documents // _FILES * _FILES, f"{out}: {rows} rows"


def _part(*arguments: object) -> list[object]:
    return [sys.executable, "-m", "benchmarks.speed.engines", "--part", *arguments]


def _cost(command: list[object]) -> Cost:
    """What a command takes, by the clock and by the CPU seconds of all that it starts."""
    began, seconds = time.perf_counter(), dict[int, float]()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(list(map(str, command)), stdout=said, stderr=said)
        seconds[process.pid] = 0.0
        while process.poll() is None:
            sample(seconds)
            time.sleep(_SAMPLED)
        wall = time.perf_counter() - began
        if process.returncode:
            said.seek(0)
            raise RuntimeError(said.read()[-2000:])
    return Cost(wall, sum(seconds.values()))


def _listed(rates: list[float]) -> str:
    return ", ".join(f"{rate:,.0f}" for rate in rates)


# ── What runs in a process of its own ──


def _bare_cost(model: Path, data: Path, processes: int) -> Cost:
    """What the runtime alone takes: so many processes at once, the files shared out among them."""
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            list(map(str, _part("bare", model, data, k, processes))),
            env=alone,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for k in range(processes)
    ]
    for process in started:  # all have read everything
        assert process.stdout is not None and process.stdout.readline().strip() == "ready"
    for process in started:  # and begin together
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    costs = [json.loads(process.communicate()[0]) for process in started]
    return Cost(max(wall for wall, _ in costs), sum(cpu for _, cpu in costs))


def _bare(model: str, data: str, number: str, processes: str) -> None:
    from mpad import inference

    files = sorted(Path(data).glob("*.parquet"))[int(number) :: int(processes)]
    texts = [text for file in files for text in pyarrow.parquet.read_table(file)["text"].to_pylist()]
    pipeline = inference.load(model)
    pipeline.predict(texts[:2048])
    print("ready", flush=True)
    sys.stdin.readline()
    wall, cpu = time.perf_counter(), time.process_time()
    for first in range(0, len(texts), 2048):
        logits = pipeline.logits(texts[first : first + 2048])
        pipeline.labels.decide(logits), pipeline.labels.probabilities(logits)
    print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))


def _spark(model: str, data: str, out: str, cores: str) -> None:
    from pyspark.sql import SparkSession

    from mpad.scale.spark import score

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    spark = (
        builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    )
    score(spark.read.parquet(data), model).write.parquet(out)
    spark.stop()


if __name__ == "__main__":
    main()
