"""The README is short, begins with code, and its links lead somewhere."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_there_is_code_with_output_within_the_first_screen():
    code = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)
    assert len(code) >= 2
    assert README[: README.index(code[0][1])].count("\n") < 30


def test_it_is_short_and_its_links_lead_somewhere():
    assert README.count("\n") <= 150
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
