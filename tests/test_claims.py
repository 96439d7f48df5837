"""Every measured figure of README and docs stands in a record, and the text beside it says which command wrote that.

A figure is a number with a decimal point, with a unit (%, seconds, MB, times, points …), with ± before it, or of
something "a second". What the text says of a figure stands in a comment in its paragraph, or in one of its own below a
table: where the record is, and the way through it, a line each:

    <!--
    425 = benchmarks/streaming.json > records > 0 > fit > seconds
    5.0 = benchmarks/RESULTS.md > epoch, mpad (paper), 2,560 documents of polarity > ratio
    -->

In JSON the way is made of names, places in lists, and "name=value" for the one member of a list that has it; in
Markdown of a table's row (its first cell, or its first ones with | between) and column; in the log of a paragraph's
first words. `* 100` or `/ 1000` at the end changes the unit. The figure must be the record's value, rounded to as many
digits as it has. Tables that a function writes need no comment: they are compared with what it writes today. Numbers
in words ("half", "tens of thousands") are not looked at, nor is code: tests/test_docs.py runs it.
"""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from benchmarks import contextual, defaults, learning_curves, models
from mpad.paper.experiments import tables
from mpad.paper.experiments.records import Records
from mpad.paper.experiments.summary import summarise

ROOT = Path(__file__).parent.parent
# Not walked: docs/LOG.md and CHANGELOG.md say what was measured on a day; the others are written whole by a command, to
# which tests of their own hold them.
NOT_WALKED = ("LOG.md", "cli.md", "faithfulness.md", "SCALE.md")
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "examples" / "README.md",
    *[page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in NOT_WALKED],
]
WRITTEN_BELOW = "<!-- what follows is written by"  # the rest of a page that a command writes
# The commands that write a record, if it is not `python -m benchmarks.NAME` for benchmarks/NAME.json.
COMMANDS = {
    "benchmarks/RESULTS.md": ("make bench", "python -m benchmarks."),
    "benchmarks/serving_load.md": ("python -m benchmarks.serving_load",),
    "results/tables.md": ("mpad reproduce",),
    "security/results.json": ("make security",),
    "docs/LOG.md": ("LOG.md",),
}
# Numbers that look like figures and were not measured: settings, limits, names.
NOT_MEASURED = {
    "README.md": {"Python 3.11 and 3.12": "versions"},
    "docs/differences.md": {
        "0.5 on the word vectors": "a setting",
        "| 0.5, not where |": "a setting",
        "rate of 0.001": "a setting",
        "a random 10 %": "a setting",
        "is 100 %": "an accuracy that nothing can be above",
    },
    "docs/explanations.md": {"more than 2 %": "a tolerance, explain/gradients.py"},
    "docs/how-to/contextual-features.md": {"Beyond 8 GB": "a limit, _text/transformer.py"},
    "docs/how-to/deploy.md": {"every 30 s": "a setting of the Dockerfile", "1.1 of 10": "tests/test_deploy.py"},
    "docs/how-to/large-corpora.md": {
        "from 1 GB on": "a limit, cli/inputs.py",
        ": 1 GB of text": "what was made up to be measured on",
        "; 3 GB of text": "what was made up to be measured on",
        "10 GB of text": "what the script can make up",
    },
    "docs/how-to/serve.md": {"for 10 seconds": "a limit, server/workers.py", "within 5 seconds": "a limit"},
    "docs/results.md": {"99 % of them": "the percentile's name", "60 times the median": "a number of epochs"},
    "docs/security.md": {"200 times their size": "a limit", "30 s": "a limit, mpad serve --help"},
    "*": {"95 %": "the level of an interval"},
}
NUMBER = r"(?<![\w.,/])(?<!\w-)\d+(?:,\d{3})*(?:\.\d+)?(?![\w/-]|[.,]\d)"
UNIT = r"(?:%|(?:s|ms|µs|seconds?|minutes?|hours?|KB|MB|GB|times|points?|megabytes|CPU seconds)(?!\w))"
JOINED = rf"{NUMBER}(?:(?:,| and| or| to|, and) {NUMBER})*"
FIGURES = [
    re.compile(rf"({JOINED}) ?{UNIT}"),
    re.compile(rf"({JOINED})(?: [\w-]+){{0,5}} a second"),
    re.compile(rf"± ({NUMBER})"),
    re.compile(r"((?<![\w.,/])(?<!\w-)\d+(?:,\d{3})*\.\d+)(?![\w/-]|[.,]\d)"),
]
COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)


def paragraphs(page):
    """(what can be read, {figure: where it stands}) of each paragraph, list or table."""
    text = page.read_text(encoding="utf-8").split(WRITTEN_BELOW)[0]
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"(?m)^ {4,}\S.*$", "", text) if page.name != "README.md" else text
    text = COMMENT.sub(lambda found: re.sub(r"\n\s*\n", "\n", found[0]), text)
    result = []
    for block in re.split(r"\n\s*\n", text):
        said = dict(
            (part.strip() for part in line.split(" = ", 1))
            for comment in COMMENT.findall(block)
            for line in comment.splitlines()
            if " = " in line
        )
        block = COMMENT.sub("", block).strip()
        if block:
            result.append((block, said))
        elif result:  # a comment of its own
            result[-1] = (result[-1][0], {**result[-1][1], **said})
    return result


def figures(block, page="*"):
    """The measured figures of a paragraph, as they are written."""
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", "`…`", " ".join(block.split()))
    for phrase in (*NOT_MEASURED.get(page, ()), *NOT_MEASURED["*"]):
        text = text.replace(phrase, "…")
    found = [number for rule in FIGURES for group in rule.findall(text) for number in re.findall(NUMBER, group)]
    return list(dict.fromkeys(found))


def follow(way):
    """The numbers that stand at the end of a way through a record."""
    way, scale = re.fullmatch(r"(.*?)(?: ([*/] \d+))?", way).groups()
    file, *steps = way.split(" > ")
    content = (ROOT / file).read_text(encoding="utf-8")
    value = _in_json(json.loads(content), steps) if file.endswith(".json") else _in_markdown(content, steps)
    numbers = [float(one.replace(",", "")) for one in re.findall(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", str(value))]
    factor = 1.0 if scale is None else float(scale[2:]) if scale[0] == "*" else 1 / float(scale[2:])
    assert numbers, f"no number at {way}: {value!r}"
    return [number * factor for number in numbers]


def _in_json(value, steps):
    for step in steps:
        if isinstance(value, list) and "=" in step:
            wanted = dict(one.split("=", 1) for one in step.split(", "))
            (value,) = [one for one in value if all(str(one[name]) == said for name, said in wanted.items())]
        else:
            value = value[int(step)] if isinstance(value, list) else value[step]
    assert not isinstance(value, list | dict), f"{' > '.join(steps)} is not a number yet: {value}"
    return value


def _in_markdown(content, steps):
    if len(steps) == 1:  # of the log: a paragraph
        (paragraph,) = [part for part in re.split(r"\n\s*\n", content) if part.startswith(steps[0])]
        return paragraph
    row, column = steps
    header, found = [], []
    for before, line in zip([""] + content.splitlines(), content.splitlines(), strict=False):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if re.fullmatch(r"\|[ :|-]+\|", line):
            header = [cell.strip() for cell in before.strip().strip("|").split(" | ")]
        elif line.startswith("|") and column in header and f"{' | '.join(cells)} |".startswith(f"{row} |"):
            found.append(cells[header.index(column)])
    assert len(found) == 1, f"{len(found)} rows '{row}' with a column '{column}'"
    return found[0]


def is_rounded(figure, value):
    """Whether a figure is a value with fewer digits."""
    digits = len(figure.partition(".")[2])
    stated = float(figure.replace(",", ""))
    if "," in figure and not digits and stated % 100 == 0:  # 35,500: whole hundreds
        digits = -2
    return abs(stated - value) <= 0.5 * 10**-digits + 1e-9


@cache
def generated():
    """Tables that functions write."""
    read = {name: json.loads((ROOT / "benchmarks" / f"{name}.json").read_text()) for name in
            ("learning_curves", "defaults", "models", "contextual")}  # fmt: skip
    made = [
        tables.overview(summarise(Records(ROOT / "results" / "records"))),
        learning_curves.table(read["learning_curves"]["rows"]),
        defaults.table(read["defaults"]["rows"]),
        models.forms_table(read["models"]["forms"]),
        contextual.table(read["contextual"]["rows"]),
    ]
    return {table.strip() for table in made}


def is_named(file, text):
    """Whether a reader sees which record it is, or which command writes it."""
    commands = COMMANDS.get(file, (f"python -m benchmarks.{Path(file).stem}",))
    return file in text or any(command in text for command in commands)


def problems(page, name):
    """What is wrong with the figures of a page, in sentences."""
    before = ""
    for block, said in paragraphs(page):
        seen = figures(block, name)
        if block not in generated():
            if unknown := [figure for figure in seen if figure not in said]:
                yield f"{', '.join(unknown)}: no comment says where it stands: {block[:200]}"
        for figure, way in said.items():
            if figure not in seen:
                yield f"{figure}: said to stand at {way}, but not in the text: {block[:200]}"
            elif not any(is_rounded(figure, value) for value in follow(way)):
                yield f"{figure}: {way} is {', '.join(f'{value:g}' for value in follow(way)[:9])}"
            if not is_named(way.split(" > ")[0], before + block):
                yield f"{figure}: name {way.split(' > ')[0]} or its command beside it: {block[:200]}"
        before = block


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_figure_stands_in_a_record(page):
    wrong = list(problems(page, str(page.relative_to(ROOT))))
    assert not wrong, "\n".join(wrong)


def test_exceptions_are_of_the_text():
    for name, phrases in NOT_MEASURED.items():
        if name != "*":
            text = " ".join((ROOT / name).read_text().split())
            assert not [phrase for phrase in phrases if phrase not in text], name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("an epoch is 5.0 times as fast, 14 to 16 times with sentences", ["5.0", "14", "16"]),
        ("Start-up takes 2, 12 and 24 CPU seconds more", ["2", "12", "24"]),
        ("answers 35,500 documents of 20 words a second", ["35,500"]),
        ("64 % are right, ± 7; -0.06 by word", ["64", "7", "0.06"]),
        ("torch 2.13.0, equation 4, `--folds 3.5`, 20 areas, 2026-11-15", []),
    ],
)
def test_figures_are_recognised(text, expected):
    assert figures(text) == expected


def test_a_figure_that_is_changed_by_hand_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    way = "benchmarks/streaming.json > records > 0 > documents"
    value = int(follow(way)[0])
    for written, claimed, fault in (
        (value, value, None),
        (value + 1, value, "no comment"),
        (value + 1, value + 1, f"is {value:g}"),
    ):
        page.write_text(
            f"By `python -m benchmarks.streaming` {written:,} words a second.\n<!-- {claimed:,} = {way} -->\n"
        )
        found = " ".join(problems(page, "page.md"))
        assert (fault in found) if fault else not found
    page.write_text(f"It does {value:,} words a second.\n<!-- {value:,} = {way} -->\n")
    assert "or its command" in " ".join(problems(page, "page.md"))
