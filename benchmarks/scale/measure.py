"""What is measured: stages, empty jobs, and whole jobs by 1, 2 and 4 workers; in rounds, one thing after another."""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from benchmarks.corpus import equal_documents, short_documents
from benchmarks.scale.stages import ALONE, contention
from benchmarks.scale.watch import Watched, watch
from benchmarks.speed.answering import save_random_model
from mpad.paper.experiments.provenance import commit
from mpad.paper.experiments.provenance import versions as own_versions

_ROOT = Path(__file__).parents[2]
_COMMAND = [sys.executable, "-W", "ignore", "-m", "mpad", "predict"]
KINDS = {"short": 150_000, "long": 7_000}  # documents of a job
WORKERS = 1, 2, 4
_STAGE = {"short": 10_000, "long": 800}  # documents of the file that stages are measured on
_FILES, _EMPTY = 12, 24
_SEED = 0


def file_sizes(documents: int) -> list[int]:
    """Documents of each file of a job: as unequal as people's files are."""
    shares = np.random.default_rng(_SEED).lognormal(0.0, 0.4, _FILES)
    return [int(size) for size in np.round(documents * shares / shares.sum())]


def measure(file: Path, rounds: int, add: bool, minutes: float) -> None:
    """Write a record of so many rounds, or add them to the one that is there; fewer where time runs out."""
    began, longest = time.time(), 0.0
    files = {kind: file_sizes(documents) for kind, documents in KINDS.items()}
    config = {"seed": _SEED, "documents_of_files": files, "documents_of_stages": _STAGE, "empty_files": _EMPTY}
    record: dict[str, Any] = {"machine": _machine(), "config": config, "rounds": []}
    if add and file.is_file():
        before = json.loads(file.read_text(encoding="utf-8"))
        _check_same(before, record)
        record["rounds"] = before["rounds"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _prepare(folder)
        for _ in range(rounds):
            if time.time() + longest > began + 60 * minutes:
                break
            record["rounds"].append(_round(folder))
            longest = max(longest, record["rounds"][-1]["seconds"])
            file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _check_same(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to mix rounds of two machines or settings."""
    for name in ("config", "machine"):
        differ = {key for key in now[name] if now[name][key] != before[name].get(key)} - {"commit"}
        if differ:
            raise SystemExit(f"the record's rounds have another {', '.join(sorted(differ))}; measure without --add")


def _machine() -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    others = {name: version(name) for name in ("pyarrow", "ray") if find_spec(name)}
    return {
        "commit": commit(),
        "versions": {**own_versions(), **others},
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "gigabytes": round(memory),
        "system": platform.system(),
    }


def _prepare(folder: Path) -> None:
    texts = {
        "short": short_documents(100_000, _SEED).texts,
        "long": equal_documents(KINDS["long"], 300, _SEED),
    }
    save_random_model([*texts["short"], *texts["long"][:2000]], folder / "model")
    for kind, documents in KINDS.items():
        own = texts[kind]
        _write(folder / f"{kind}.parquet", own[: _STAGE[kind]])
        (folder / kind).mkdir()
        first = 0
        for number, size in enumerate(file_sizes(documents)):
            _write(folder / kind / f"{number:02}.parquet", [own[(first + k) % len(own)] for k in range(size)])
            first += size
    (folder / "empty").mkdir()
    for number in range(_EMPTY):
        _write(folder / "empty" / f"{number:02}.parquet", texts["short"][:1])


def _write(path: Path, texts: list[str]) -> None:
    labels = [f"class{number % 2}" for number in range(len(texts))]  # packing for training wants them
    pyarrow.parquet.write_table(pyarrow.table({"text": texts, "label": labels}), path)


def _round(folder: Path) -> dict[str, Any]:
    """Everything once, in an order that puts stages between whole jobs."""
    model, began = folder / "model", time.time()
    result: dict[str, Any] = {"load": os.getloadavg()[0], "stages": {}, "points": []}
    engines = ["pool", *(["ray"] if find_spec("ray") else [])]
    result["contention"] = contention(model, folder / "short.parquet", len(os.sched_getaffinity(0)))
    result["empty"] = {engine: _empty(engine, folder) for engine in engines}
    for kind in KINDS:
        result["stages"][kind] = _stages(model, folder / f"{kind}.parquet")
        for engine in engines if kind == "short" else ["pool"]:
            for workers in WORKERS:
                point = _point(engine, kind, workers, folder)
                result["points"].append({"engine": engine, "kind": kind, "workers": workers, **asdict(point)})
                print(
                    f"{engine:5} {kind:6} {workers} workers {point.seconds:6.1f} s, others {point.others:.2f} cores",
                    flush=True,
                )
    result["seconds"] = time.time() - began
    return result


def _stages(model: Path, data: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scale.stages", str(model), str(data)]
    done = subprocess.run(command, env={**_environment(), **ALONE}, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def _empty(engine: str, folder: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as out:
        parts = engine, folder / "model", folder / "empty", Path(out) / "answers"
        began = time.time()
        watched = watch([sys.executable, "-W", "ignore", "-m", "benchmarks.scale.empty_job", *parts], _environment())
        marks = json.loads((Path(out) / "answers" / "marks.json").read_text())
    return {"began": began, **asdict(watched), **marks}


def _point(engine: str, kind: str, workers: int, folder: Path) -> Watched:
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "answers"
        options = ["--workers", workers, *(["--engine", "ray"] if engine == "ray" else [])]
        point = watch([*_COMMAND, folder / "model", folder / kind, out, *options], _environment())
        rows = sum(pyarrow.parquet.read_metadata(file).num_rows for file in out.glob("*.parquet"))
    assert rows == sum(file_sizes(KINDS[kind])), f"{rows} rows were written"
    return point


def _environment() -> dict[str, str]:
    """Processes of their own find this repository by its path, Ray's workers too."""
    before = os.environ.get("PYTHONPATH")
    path = [str(_ROOT / "src"), str(_ROOT), *([before] if before else [])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
