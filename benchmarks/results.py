"""What the benchmarks found: rows, printed as a table, as JSON, and as RESULTS.md."""

import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy
import torch

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Row:
    """One figure. `ratio` is to the yardstick in the same run; `target` is what was asked for, where something was."""

    what: str
    ours: str
    yardstick: str = ""
    ratio: float | None = None
    target: str = ""
    note: str = ""


def machine() -> dict[str, str]:
    """Where and with what this was measured."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE).stdout
    return {
        "commit": commit.strip() or "unknown",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "cores": str(os.cpu_count()),
    }


def markdown(sections: dict[str, list[Row]]) -> str:
    """All sections as Markdown tables."""
    parts = [
        "# Benchmarks\n",
        "Written by `make bench`; yardsticks are in this folder. A ratio says how many times the yardstick's speed "
        "ours is (of memory: the share of what was allowed), both timed in turn in one run on a noisy machine.\n",
        ", ".join(f"{name} {value}" for name, value in machine().items()) + "\n",
    ]
    for title, rows in sections.items():
        parts.append(f"## {title}\n")
        parts.append("| what | ours | yardstick | ratio | target | note |\n|---|---|---|---|---|---|")
        for row in rows:
            ratio = "" if row.ratio is None else f"{row.ratio:.1f}"
            parts.append(f"| {row.what} | {row.ours} | {row.yardstick} | {ratio} | {row.target} | {row.note} |")
        parts.append("")
    return "\n".join(parts)


def write(sections: dict[str, list[Row]]) -> None:
    """Print everything, and keep it in RESULTS.md and results.json."""
    text = markdown(sections)
    record = {"machine": machine(), "sections": {t: [asdict(row) for row in rows] for t, rows in sections.items()}}
    (HERE / "RESULTS.md").write_text(text, encoding="utf-8")
    (HERE / "results.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(text)
    print(json.dumps(record))
