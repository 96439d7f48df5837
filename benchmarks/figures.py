"""`python -m benchmarks.figures [--check]`: write recorded figures and tables into README and docs.

docs/figures.toml lists each page's phrases, with a format in place of each figure, and the record of each figure:

    "fits in {:.1f} s with {:,.0f} MB" = ["benchmarks/some.json > fit > seconds", "benchmarks/some.json > fit > peak"]

A phrase must occur once in its page; line breaks do not matter. A record is a file and the path to a number in it. In
JSON a step is a name, a position in a list, or name=value for the only item that has it; in a Markdown table the steps
are the first cells of a row, separated by |, and the column. In a text such as "29.5 s", a further position selects one
of several numbers. `* 100` or `/ 1000` at the end scales the number. A number in place of a record is inserted as is.
With --check nothing is written, and a difference is an error.
"""

import argparse
import difflib
import json
import re
import sys
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from benchmarks.accuracy import contextual, defaults, learning_curves, models
from mpad.paper.experiments import tables
from mpad.paper.experiments.records import Records
from mpad.paper.experiments.summary import summarise

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures.toml"
Source = str | float


@cache
def _read(file: str) -> Any:
    return json.loads((ROOT / file).read_text(encoding="utf-8"))


TABLES: dict[str, list[Callable[[], str]]] = {
    "README.md": [lambda: learning_curves.table(_read("benchmarks/learning_curves.json")["rows"])],
    "docs/results.md": [
        lambda: defaults.table(_read("benchmarks/defaults.json")["rows"]),
        lambda: tables.overview(summarise(Records(ROOT / "results" / "records"))),
    ],
    "docs/how-to/contextual-features.md": [lambda: contextual.table(_read("benchmarks/contextual.json")["rows"])],
    "docs/how-to/int8.md": [lambda: models.forms_table(_read("benchmarks/models.json")["forms"])],
}
_NUMBER = r"(?<![\w.])[+-]?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?"


def updated(name: str, text: str) -> tuple[str, list[str]]:
    """Return a page with today's figures and tables, and an error for each that has no place or no record."""
    errors = []
    phrases = tomllib.loads(FIGURES.read_text(encoding="utf-8")).get(name, {})
    for phrase, sources in phrases.items():
        try:
            text = insert_figures(text, phrase, sources if isinstance(sources, list) else [sources])
        except (LookupError, ValueError) as error:
            errors.append(f"{name}: {error}")
    for table in TABLES.get(name, ()):
        try:
            text = insert_table(text, table())
        except LookupError as error:
            errors.append(f"{name}: {error}")
    return text, errors


def insert_figures(text: str, phrase: str, sources: Sequence[Source]) -> str:
    """Replace the figures of a phrase by those of its sources."""
    parts = list(Formatter().parse(phrase))
    pattern = "".join(re.escape(words) + ("" if spec is None else f"({_NUMBER})") for words, _, spec, _ in parts)
    found = _find_once(re.sub(r"(?:\\ )+", r"\\s+", pattern), text, phrase)
    formats = [spec for _, _, spec, _ in parts if spec is not None]
    shown = [format(value(source), spec) for source, spec in zip(sources, formats, strict=True)]
    for group in range(len(shown), 0, -1):
        start, end = found.span(group)
        text = text[:start] + shown[group - 1] + text[end:]
    return text


def insert_table(text: str, table: str) -> str:
    """Replace the table that has the same header."""
    header = table.partition("\n")[0]
    start, end = _find_once(rf"(?m)^{re.escape(header)}\n(?:\|.*\n)*", text, header).span()
    return text[:start] + table.strip() + "\n" + text[end:]


def _find_once(pattern: str, text: str, words: str) -> re.Match[str]:
    found = list(re.finditer(pattern, text))
    if len(found) != 1:
        raise LookupError(f"expected once, found {len(found)} times: {words}")
    return found[0]


def value(source: Source) -> float:
    """Return the number that a source names."""
    if not isinstance(source, str):
        return source
    path, *scale = re.split(r" ([*/]) (?=-?\d+$)", source)
    file, *steps = path.split(" > ")
    try:
        found = _in_json(_read(file), steps) if file.endswith(".json") else _in_table(file, steps)
    except (LookupError, ValueError) as error:
        raise LookupError(f"no number at {source}: {error}") from error
    if not scale:
        return found
    operator, factor = scale
    return found * float(factor) if operator == "*" else found / float(factor)


def _in_json(at: Any, steps: Sequence[str]) -> float:
    for number, step in enumerate(steps):
        if isinstance(at, str):
            return _in_text(at, steps[number:])
        if isinstance(at, list) and "=" in step:
            wanted = dict(one.split("=", 1) for one in re.split(r", (?=\w+=)", step))
            (at,) = [item for item in at if all(str(item[key]) == each for key, each in wanted.items())]
        else:
            at = at[int(step)] if isinstance(at, list) else at[step]
    return _in_text(str(at), [])


def _in_table(file: str, steps: Sequence[str]) -> float:
    row, column, *rest = steps
    header: list[str] = []
    found = []
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    for above, line in zip(["", *lines], lines, strict=False):
        if re.fullmatch(r"\|[ :|-]+\|", line):
            header = _cells(above)
        elif column in header and f"{' | '.join(_cells(line))} |".startswith(f"{row} |"):
            found.append(_cells(line)[header.index(column)])
    (text,) = found
    return _in_text(text, rest)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def _in_text(text: str, steps: Sequence[str]) -> float:
    """Return the only number in a text, or the one at a position."""
    numbers = re.findall(_NUMBER, text)
    if steps:
        return float(numbers[int(steps[0])].replace(",", ""))
    (number,) = numbers
    return float(number.replace(",", ""))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write every page, or compare it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.figures")
    parser.add_argument("--check", action="store_true", help="write nothing; a difference is an error")
    check = parser.parse_args(arguments).check
    problems = []
    for name in tomllib.loads(FIGURES.read_text(encoding="utf-8")).keys() | TABLES:
        old = (ROOT / name).read_text(encoding="utf-8")
        new, errors = updated(name, old)
        problems += errors
        if check:
            problems += difflib.unified_diff(old.splitlines(), new.splitlines(), name, "the records", "", "", 0, "")
        elif new != old:
            (ROOT / name).write_text(new, encoding="utf-8")
            print(f"wrote {name}")
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
