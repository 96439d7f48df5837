"""What the benchmarks found: rows, kept as JSON, one file a kind of machine, and shown together in RESULTS.md."""

import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy
import torch

from mpad.experiments.provenance import commit

HERE = Path(__file__).parent
KINDS = {"cpu": "`make bench`", "gpu": "`make bench-gpu`", "rivals": "`python -m benchmarks.rivals`"} | {
    "serving": "`python -m benchmarks.serving`"
}


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
    found = {
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "cores": str(os.cpu_count()),
        "data": "real corpora" if os.environ.get("MPAD_DATA") else "made-up corpora",
    }
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def markdown(records: dict[str, dict[str, Any]]) -> str:
    """All records as Markdown tables."""
    parts = [
        "# Benchmarks\n",
        "Written by the benchmarks themselves; the yardsticks are in this folder. A ratio says how many times the "
        "yardstick's speed ours is (of memory: the share of what was allowed), both timed in turn in one run.\n",
    ]
    for kind, record in records.items():
        parts.append(f"## {KINDS[kind]}\n")
        parts.append(", ".join(f"{name} {value}" for name, value in record["machine"].items()) + "\n")
        for title, rows in record["sections"].items():
            parts.append(f"### {title}\n")
            parts.append("| what | ours | yardstick | ratio | target | note |\n|---|---|---|---|---|---|")
            for row in rows:
                ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
                cells = row["what"], row["ours"], row["yardstick"], ratio, row["target"], row["note"]
                parts.append(f"| {' | '.join(cells)} |")
            parts.append("")
    return "\n".join(parts)


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
