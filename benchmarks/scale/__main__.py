"""`python -m benchmarks.scale`: measure, simulate, and write docs/SCALE.md with its figure.

Ten minutes on two cores with nothing else to do. Ray is measured where it is installed.
"""

import argparse
import json
from pathlib import Path

from benchmarks.scale.document import draw, markdown
from benchmarks.scale.inputs import inputs_of
from benchmarks.scale.scenarios import check, scenarios, streams

_DOCS = Path(__file__).parents[2] / "docs"
_RECORD = Path(__file__).parent / "measured.json"


def main() -> None:
    """Do all of it, or only what comes after measuring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of measuring; 0 takes the record that is there")
    parser.add_argument("--add", action="store_true", help="keep the rounds that are there")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no round that would not end within these")
    asked = parser.parse_args()
    if asked.rounds:
        from benchmarks.scale.measure import measure

        measure(_RECORD, asked.rounds, asked.add, asked.minutes)
    record = json.loads(_RECORD.read_text(encoding="utf-8"))
    inputs = inputs_of(record)
    checks = check(record, inputs)
    page = markdown(record, inputs, checks, list(scenarios(inputs)), streams(inputs, "long"))
    (_DOCS / "SCALE.md").write_text(page, encoding="utf-8")
    draw(checks, _DOCS / "scale.png")
    for one in checks:
        print(f"{one.engine:5} {one.kind:6} {one.workers} workers: error {one.error:+.1%}")


if __name__ == "__main__":
    main()
