"""What the benchmarks found: rows, kept as JSON, one file a kind of machine, and shown together in RESULTS.md."""

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy
import torch

from mpad.paper.experiments.provenance import commit

HERE = Path(__file__).parent
KINDS = {"cpu": "`make bench`", "gpu": "`make bench-gpu`", "baselines": "`python -m benchmarks.speed.baselines`"} | {
    "serving": "`python -m benchmarks.speed.serving`",
    "engines": "`python -m benchmarks.speed.engines`",
    "page": "`python -m benchmarks.speed.page`",
}


@dataclass(frozen=True)
class Row:
    """One figure, of the rounds' medians.

    `ratio` is to the yardstick in the same run, `spread` its smallest and largest of the rounds (of rows without a
    ratio, the figure's); `target` is what was asked for, where something was; `text` says whether texts are real.
    """

    what: str
    ours: str
    yardstick: str = ""
    ratio: float | None = None
    target: str = ""
    note: str = ""
    spread: str = ""
    text: str = ""


def measured_commit() -> str:
    """The commit that is checked out, with a + where files differ from it, but for records and what is made of them."""
    named = commit()
    if not named.endswith("+"):
        return named
    status = ["git", "status", "--porcelain", "--untracked-files=no"]
    lines = subprocess.run(status, capture_output=True, text=True, cwd=HERE, check=True).stdout.splitlines()
    written = re.compile(r"benchmarks/(scale/)?\w+\.(jsonl?|md)|docs/([\w-]+\.png|SCALE\.md)")
    code = [line for line in lines if not written.fullmatch(line[3:])]
    return named if code else named.removesuffix("+")


def check_clean() -> None:
    """A record names a commit: refuse to measure what none holds."""
    if measured_commit().endswith("+"):
        sys.exit("expected the files of a commit, got changed ones, which no record could name: commit or stash first")


def machine() -> dict[str, str]:
    """Where and with what this was measured."""
    found = {
        "commit": measured_commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "cores": str(os.cpu_count()),
    }
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def markdown(records: dict[str, dict[str, Any]]) -> str:
    """All records as Markdown tables."""
    parts = [
        "# Benchmarks\n",
        "Written by the benchmarks themselves; the yardsticks are in this folder. A ratio says how many times the "
        "yardstick's speed ours is (of memory: the share of what was allowed), both timed in turn in one run. It is "
        "the median of five rounds, and the spread is the smallest and largest of them (others: one run).\n",
        "Texts are those of a real corpus or made up, row by row. In training, ours drops word vectors out by word, "
        "the padded network by node; else the networks are the same, which tests/benchmarks holds them to.\n",
        _commits(records),
    ]
    for kind, record in records.items():
        parts.append(f"## {KINDS[kind]}\n")
        parts.append(", ".join(f"{name} {value}" for name, value in record["machine"].items()) + "\n")
        for title, rows in record["sections"].items():
            parts.append(f"### {title}\n")
            parts.append("| what | ours | yardstick | ratio | spread | text | target | note |\n" + "|---" * 8 + "|")
            for row in rows:
                ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
                cells = row["what"], row["ours"], row["yardstick"], ratio, *_kept(row), _judged(row), row["note"]
                parts.append(f"| {' | '.join(cells)} |")
            parts.append("")
    return "\n".join(parts)


def _judged(row: dict[str, Any]) -> str:
    """The target, and that it was missed, where it is a number for the ratio."""
    asked = re.match(r"(at most |at least )?(\d+(?:\.\d+)?)( \(lower is better\))?$", row["target"])
    if asked is None or row["ratio"] is None:
        return str(row["target"])
    least = asked[1] != "at most "
    missed = row["ratio"] < float(asked[2]) if least else row["ratio"] > float(asked[2])
    return row["target"] + (" **missed**" if missed else "")


def _kept(row: dict[str, Any]) -> tuple[str, str]:
    return row.get("spread", ""), row.get("text", "")


def _commits(records: dict[str, dict[str, Any]]) -> str:
    """Whether all parts were measured on one commit."""
    commits = {kind: record["machine"]["commit"] for kind, record in records.items()}
    if len(set(commits.values())) < 2:
        return "All parts are of one commit.\n"
    said = ", ".join(f"{KINDS[kind]} {name}" for kind, name in commits.items())
    return f"**The parts below are of different commits**: {said}.\n"


def on(text: str, rows: Sequence[Row]) -> list[Row]:
    """The rows, measured on that kind of text."""
    return [replace(row, text=text) for row in rows]


def write(sections: dict[str, list[Row]], kind: str, folder: Path = HERE) -> None:
    """Keep the record, write RESULTS.md anew from all records, and print this one: JSON, then a short table."""
    record = {"machine": machine(), "sections": {t: [asdict(row) for row in rows] for t, rows in sections.items()}}
    (folder / f"{kind}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    found = {name: folder / f"{name}.json" for name in KINDS}
    records = {name: json.loads(file.read_text(encoding="utf-8")) for name, file in found.items() if file.is_file()}
    (folder / "RESULTS.md").write_text(markdown(records), encoding="utf-8")
    print(json.dumps(record))
    for title, rows in sections.items():
        print(f"\n{title}")
        for row in rows:
            ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
            print(f"  {row.what:<72} {row.ours:<34} {ratio:>9}  {row.target}")
