"""`python -m benchmarks.scale.stages`: what each stage of scoring and of packing costs a document, in one process.

Files are scored by the code that workers run, with a clock around each stage; a thread's CPU seconds, so that others on
the machine count for little. Prints JSON.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow
import pyarrow.parquet

from mpad import inference
from mpad.data.streams import Columns, Piece
from mpad.graph.build import GraphConfig
from mpad.scale import job as jobs
from mpad.scale.columns import PredictOptions
from mpad.scale.job import Task
from mpad.scale.shards import open_shard
from mpad.text.tokenizer import as_tokenizer
from mpad.text.vocabulary import Vocabulary
from mpad.training.stream import Reading, build_shards, corpus_labels, corpus_vocabulary, count_corpus

ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_ROUNDS = 3
_BESIDE = 3.0  # seconds


def measure(model: Path, data: Path) -> dict[str, Any]:
    """Costs of a document of a file, of the file itself, and how much they differ from time to time."""
    documents = pyarrow.parquet.read_metadata(data).num_rows
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.parquet"
        few = Path(folder) / "few.parquet"
        pyarrow.parquet.write_table(pyarrow.parquet.read_table(data).slice(0, 1), few)
        job = jobs.make_job(model, None, PredictOptions(), None)
        first = score(job, data, out)[1]  # which works out what is known of each word from then on
        rounds: list[dict[str, float]] = []
        whole: list[tuple[float, float]] = []
        for _ in range(_ROUNDS):
            with _clocks() as spent:
                score(job, data, out)
            rounds.append(dict(spent))
            whole.append(score(job, data, out))
        one_file = sorted(score(job, few, out)[1] for _ in range(20))[10]
        size = score(job, data, out) and out.stat().st_size
        packing = _packing(data, Path(folder))
    return {
        "documents": documents,
        "stages": {name: sorted(one[name] for one in rounds)[_ROUNDS // 2] / documents for name in rounds[0]},
        "whole_cpu": [cpu / documents for _, cpu in whole],
        "whole_seconds": [seconds / documents for seconds, _ in whole],
        "one_file_cpu": one_file,
        "warm_up_cpu": max(0.0, first - sorted(cpu for _, cpu in whole)[len(whole) // 2]),
        "read_bytes": data.stat().st_size / documents,
        "text_bytes": _text_bytes(data) / documents,
        "written_bytes": size / documents,
        "packing": packing,
    }


def score(job: jobs.Job, data: Path, out: Path) -> tuple[float, float]:
    """Score a file as a worker does; seconds by the clock, and of CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    outcome = job.score(Task(data, out))
    if outcome.error:
        raise RuntimeError(outcome.error)
    return time.perf_counter() - wall, time.process_time() - cpu


@contextmanager
def _clocks() -> Iterator[dict[str, float]]:
    """CPU seconds by stage of what is scored meanwhile; what no clock is around is "rest"."""
    spent: dict[str, float] = defaultdict(float)

    def timed(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def clocked(*arguments: Any, **options: Any) -> Any:
            start = time.thread_time()
            try:
                return function(*arguments, **options)
            finally:
                spent[stage] += time.thread_time() - start

        return clocked

    def opened(*arguments: Any) -> Any:
        shard = timed("read", jobs_open)(*arguments)
        return replace(shard, batches=_timed_batches(shard.batches))

    def _timed_batches(batches: Iterator[Any]) -> Iterator[Any]:
        following = timed("read", lambda: next(batches, None))
        while (batch := following()) is not None:
            yield batch

    jobs_open, writer = open_shard, pyarrow.parquet.ParquetWriter
    with ExitStack() as stack:
        stack.enter_context(patch.object(jobs, "open_shard", opened))
        for stage, home, name in (
            ("tokenise", Vocabulary, "encode"),
            ("graphs", inference, "build_graphs"),
            ("network", inference.Pipeline, "answer"),
            ("write", writer, "write_table"),
            ("write", writer, "close"),
        ):
            stack.enter_context(patch.object(home, name, timed(stage, getattr(home, name))))
        start = time.process_time()
        yield spent
    spent["rest"] = time.process_time() - start - sum(spent.values())


def _packing(data: Path, folder: Path) -> dict[str, float]:
    """CPU seconds and bytes a document of the two passes of `mpad fit --stream`."""
    pieces = [Piece(data, Columns("text", "label"))]
    cpu = [time.process_time()]
    counts = count_corpus(pieces, as_tokenizer("kim"), folder, 1)
    cpu.append(time.process_time())
    vocabulary, labels = corpus_vocabulary(counts, 2), corpus_labels(counts)
    cpu.append(time.process_time())
    reading = Reading(as_tokenizer("kim"), False, GraphConfig(), vocabulary, labels, 4096)
    shards = build_shards(pieces, reading, folder, 1)
    cpu.append(time.process_time())
    return {
        "count_cpu": (cpu[1] - cpu[0]) / counts.documents,
        "pack_cpu": (cpu[3] - cpu[2]) / counts.documents,
        "shard_bytes": sum(shard.path.stat().st_size for shard in shards) / counts.documents,
    }


def _text_bytes(data: Path) -> int:
    return sum(len(text.encode()) for text in pyarrow.parquet.read_table(data)["text"].to_pylist())


def contention(model: Path, data: Path, cores: int) -> dict[str, float]:
    """CPU seconds of a document in one process alone, with one for each core at the same time, and with two."""
    processes = {"alone": 1, "beside": cores, "crowded": 2 * cores}
    return {name: _at_once(model, data, number) for name, number in processes.items()}


def _at_once(model: Path, data: Path, processes: int) -> float:
    command = [sys.executable, "-m", "benchmarks.scale.stages", "--beside", str(model), str(data)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **ALONE})
        for _ in range(processes)
    ]
    for process in started:  # all have read the model
        assert process.stdout is not None and process.stdout.readline().strip() == "ready"
    costs = []
    for process in started:  # and begin together
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        costs.append(float(process.communicate()[0]))
    return sum(costs) / len(costs)


def _beside(model: Path, data: Path) -> None:
    job = jobs.make_job(model, None, PredictOptions(), None)
    rows, total = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.parquet"
        score(job, data, out)
        print("ready", flush=True)
        sys.stdin.readline()
        began = time.perf_counter()
        while time.perf_counter() - began < _BESIDE:
            total += score(job, data, out)[1]
            rows += pyarrow.parquet.read_metadata(out).num_rows
    print(total / rows)


def main() -> None:
    """Measure one file, or score it over and over beside others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--beside", action="store_true")
    asked = parser.parse_args()
    if asked.beside:
        _beside(asked.model, asked.data)
    else:
        print(json.dumps(measure(asked.model, asked.data)))


if __name__ == "__main__":
    main()
