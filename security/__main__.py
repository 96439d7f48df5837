"""`python -m security`: try every promise of docs/security.md, and write what came of it there (20 minutes, two cores).

`--quick` tries a twentieth of it and writes nothing. The exit code is 1 if a promise was broken.
"""

import argparse
import hashlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from security import folders, fuzz, outcome, report
from security.beside import beside
from security.crowd import crowd
from security.kills import kill_and_resume


def main() -> None:
    """Run all, then say whether all was well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of it, for a look")
    quick = parser.parse_args().quick
    share = 20 if quick else 1
    makers: dict[str, Callable[[], outcome.Case]] = {
        "model folders, damaged": folders.by_accident,
        "model folders, changed on purpose": folders.on_purpose,
        **fuzz.MAKERS,
    }
    fuzzed = []
    for name, make in makers.items():
        fuzzed.append(outcome.run(name, make, (2_000 if name == "HTTP bodies" else 10_000) // share))
        print(outcome.as_record(fuzzed[-1]), flush=True)
    results: dict[str, Any] = {
        "origin": _origin(),
        "fuzzed": [outcome.as_record(one) for one in fuzzed],
        "kills": kill_and_resume(2 if quick else 20),
        "crowd": crowd(60.0 / share),
        "beside": beside(2 if quick else 4),
        "speed": _speed(),
        "sanitized": _sanitized(),
    }
    for name in ("kills", "crowd", "beside", "speed", "sanitized"):
        print(name, results[name], flush=True)
    if not quick:
        report.write(results)
    others = results["kills"]["identical"], not results["crowd"]["failed"], results["sanitized"]["findings"] == 0
    sys.exit(0 if all(one.clean for one in fuzzed) and all(others) else 1)


def _origin() -> dict[str, str]:
    from mpad.paper.experiments.provenance import commit, versions

    said = ", ".join(f"{name} {version}" for name, version in versions().items())
    return {"when": datetime.now(UTC).date().isoformat(), "commit": commit(), "versions": said}


def _sanitized() -> dict[str, object]:
    """Tests of the C code that pass under sanitizers; what these find ends the run."""
    done = subprocess.run([sys.executable, "-m", "security.sanitize"], capture_output=True, text=True)
    passed = re.search(r"(\d+) passed", done.stdout)
    return {"tests": int(passed[1]) if passed else 0, "findings": 0 if done.returncode == 0 and passed else 1}


def _speed() -> dict[str, object]:
    """CPU milliseconds to read a model with 30,000 fixed vectors of 300 numbers, and to answer on one document."""
    from mpad import MPADClassifier
    from mpad import inference as runtime

    with tempfile.TemporaryDirectory() as folder:
        root, generator = Path(folder), np.random.default_rng(0)
        words = [f"w{k}" for k in range(30_000)]
        np.savez(root / "v.npz", words=np.array(words), vectors=generator.normal(size=(30_000, 300)).astype(np.float32))
        texts = [" ".join(words[k] for k in generator.integers(0, 5_000, 20)) for _ in range(200)]
        model = MPADClassifier(vectors=str(root / "v.npz"), max_epochs=1, random_state=0, device="cpu")
        model.fit(texts, np.arange(200) % 2).save(root / "m")
        loaded = runtime.load(root / "m")
        loaded.predict_proba(texts)
        file = root / "m" / "model.safetensors"
        with threadpool_limits(1):  # threads of a product that wait count as CPU time
            return {
                "megabytes": round(file.stat().st_size / 1e6),
                "load": _milliseconds(lambda: runtime.load(root / "m"), 5),
                "checksums": _milliseconds(lambda: hashlib.sha256(file.read_bytes()).hexdigest(), 5),
                "one document": _milliseconds(lambda: loaded.predict_proba(texts[:1]), 200),
            }


def _milliseconds(work: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(7):
        start = time.process_time()
        for _ in range(times):
            work()
        found.append(1000 * (time.process_time() - start) / times)
    return round(statistics.median(found), 2)


if __name__ == "__main__":
    main()
