"""Every block of README and docs runs, and prints what stands below it.

```python blocks of a page run one after another in a folder of the page's own; what they print is the plain block
behind them. ```console blocks run line by line, each line after "$ "; what a line prints, on standard output and
error, is compared with what stands below it, where "…" stands for any lines. Numbers with a decimal point differ from
machine to machine, and count as equal; so does the order of weights, such as +0.123, whose lines are left out.
```sh blocks are those that no test can run, such as an installation: their commands begin with one of a few words.
```py blocks need a hub, a cluster or other packages; the reader in onnx.md is run by tests/export.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

from mpad.paper.networks.baselines import BASELINES
from mpad.registry import REGISTRY

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOT_RUN = (
    "git clone", "cd ", "python3 -m venv", "pip install", "make ", "export ", "mpad serve", "mpad data import",
    "mpad data check mpqa", "mpad reproduce table", "mpad fit train.csv --add", "curl ",
    "mpad fit train.csv --encoder", "mpad pretrain ", "mpad label ", "docker ", "systemctl ",
    "mpad predict my-model 'in", "mpad tune reviews.csv", "sudo ",
    "torchrun ", "accelerate ", "kill ", "spark-submit ", "ray ", "promtool ",
)  # fmt: skip
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Pages that lag behind on purpose: a log of what was, and records of one machine.
HISTORY = {"LOG.md", "results.md", "explanations.md", "security.md", "architecture.md", "cli.md"}


def blocks(page):
    return [(language, body) for language, body in BLOCK.findall(page.read_text())]


def masked(text):
    kept = [line for line in text.splitlines() if not re.search(r" [+-]\d+\.\d+", line)]
    return re.sub(r"\d+\.\d+", "#.#", re.sub(r"[ \t]+", " ", "\n".join(kept))).strip()


def check_printed(shown, printed, where):
    """Lines of `shown` stand in `printed` in their order; between two of them nothing else, unless … does."""
    wanted, lines, at, free = masked(shown).splitlines(), masked(printed).splitlines(), 0, False
    for line in wanted:
        if line.strip() == "…":
            free = True
            continue
        places = [k for k in range(at, len(lines)) if lines[k].strip() == line.strip()]
        assert places and (free or places[0] == at), f"{where}: expected {line!r}, printed:\n{printed}"
        at, free = places[0] + 1, False
    assert free or at == len(lines), f"{where}: printed more:\n{printed}"


def run_python(code, names, where):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # libraries' own
        exec(compile(code, where, "exec"), names)
    return out.getvalue()


def run_console(body, where):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command += "\n" + more
        done = subprocess.run(
            ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        assert done.returncode == 0, f"{where}: {command}\n{done.stdout}"
        check_printed(shown, done.stdout, f"{where}: {command}")


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name != "cli.md" and {"python", "console"} & {one for one, _ in blocks(page)}],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_block_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    pytest.importorskip("model2vec", reason="pages use the extra 'vectors'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    where, names = str(page.relative_to(ROOT)), {"__name__": "__main__"}
    listed = blocks(page)
    with patch.dict(REGISTRY), patch.dict(BASELINES):  # a page adds a model
        for number, (language, body) in enumerate(listed):
            if language == "python":
                printed = run_python(body, names, where)
                if number + 1 < len(listed) and listed[number + 1][0] == "":
                    check_printed(listed[number + 1][1], printed, where)
            elif language == "console":
                run_console(body, where)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in HISTORY], ids=lambda page: str(page.relative_to(ROOT))
)
def test_blocks_that_are_not_run_are_few(page):
    before = ""
    for language, body in blocks(page):
        if language == "sh":
            lines = [line for line in body.splitlines() if line.strip() and not line.startswith(("#", " "))]
            assert all(line.startswith(NOT_RUN) for line in lines), f"{page.name}: run this as console: {body}"
        elif language == "py":
            apart = "hub.md", "score-at-scale.md", "onnx.md", "encoder.md"
            assert page.name in apart, f"{page.name}: run this as python: {body}"
        elif language == "yaml":
            assert yaml.safe_load(body)
        elif language == "json":
            assert [json.loads(line) for line in body.splitlines()]
        elif language == "":
            assert before == "python", f"{page.name}: a block that is neither run nor printed by one: {body}"
        before = language


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert not [link for link in links if not (page.parent / link).exists()]


def test_the_site_builds_strictly(tmp_path):
    pytest.importorskip("mkdocs", reason="needs mkdocs-material and mkdocstrings")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stderr
    index = (tmp_path / "site" / "index.html").read_text()
    loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', index)
    assert not loaded, "the site asks nobody else for anything"
    assert "partial_fit" in (tmp_path / "site" / "reference" / "python.html").read_text()
