import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_is_what_help_says(tmp_path):
    """`make docs` writes docs/cli.md from the commands' own help; it must not lag behind."""
    command = [sys.executable, "-m", "typer", "mpad.cli.main", "utils", "docs", "--name", "mpad"]
    subprocess.run([*command, "--output", str(tmp_path / "cli.md")], check=True, capture_output=True)
    assert (tmp_path / "cli.md").read_text() == PAGE.read_text()
