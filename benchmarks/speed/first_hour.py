"""`python -m benchmarks.speed.first_hour`: the steps of docs/first-hour.md by the clock, the installation among them.

Installs the checkout into a fresh environment, with nothing cached of word vectors, and runs each command there. Writes
first_hour.json.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import results
from mpad.paper.experiments.provenance import commit, versions

FILE = results.HERE / "first_hour.json"
ROOT = results.HERE.parent
_TEXT = "What a great day."
_PORT = 8129
STEPS = {
    "look at the data": "mpad data export tweets train.csv && mpad data export tweets test.csv --part test && "
    "mpad data check train.csv",
    "a model": "mpad fit train.csv --out my-model --keep-examples",
    "ask it": f"echo '{_TEXT}' | mpad predict my-model && mpad evaluate my-model test.csv && "
    f"mpad explain my-model '{_TEXT}'",
    "a report": "mpad report my-model test.csv --out report.html",
}


def main() -> None:
    """Walk, and write how long each step took."""
    with TemporaryDirectory() as name:
        folder, rows = Path(name), []
        path, cache = f"{folder}/.venv/bin:{os.environ['PATH']}", f"{folder}/cache"
        environment = {**os.environ, "PATH": path, "XDG_CACHE_HOME": cache}
        made = f"'{sys.executable}' -m venv .venv && .venv/bin/pip install -q -c '{ROOT}/constraints.txt'"
        install = f"{made} '{ROOT}[vectors,serve,plots]'"
        for step, command in {"install": install, **STEPS}.items():
            start = time.perf_counter()
            done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{step}: {done.stderr[-2000:]}")
            rows.append({"step": step, "seconds": round(time.perf_counter() - start, 1)})
            print(rows[-1], done.stdout[-300:], done.stderr[-400:], flush=True)
        rows.append({"step": "the page", "seconds": round(_served(folder, environment), 1)})
    FILE.write_text(json.dumps({"rows": rows, "commit": commit(), "versions": versions()}, indent=1) + "\n")


def _served(folder: Path, environment: dict[str, str]) -> float:
    """Seconds until the page is there."""
    start = time.perf_counter()
    server = subprocess.Popen(
        ["mpad", "serve", "my-model", "--port", str(_PORT), "--quiet"], cwd=folder, env=environment
    )
    try:
        while time.perf_counter() - start < 60:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{_PORT}/") as answer:
                    assert answer.status == 200
                    return time.perf_counter() - start
            except OSError:
                time.sleep(0.05)
        raise SystemExit("the page does not come")
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)


if __name__ == "__main__":
    main()
