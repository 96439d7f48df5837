"""What `make site` adds to docs/: changelog, tables and benchmarks, which stand elsewhere in the repository."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PAGES = {"changelog.md": "CHANGELOG.md", "tables.md": "results/tables.md", "benchmarks.md": "benchmarks/RESULTS.md"}
PAGES["serving-load.md"] = "benchmarks/serving_load.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pages and figures under names of their own."""
    for name, source in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text()))
    for figure in sorted((ROOT / "results" / "figures").glob("*.png")):
        files.append(File.generated(config, f"figures/{figure.name}", content=figure.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links that leave docs/ lead to these pages."""
    for name, source in PAGES.items():
        markdown = markdown.replace(f"](../{source}", f"]({name}").replace(f"](../../{source}", f"](../{name}")
    return markdown.replace("](../results/figures/", "](figures/")
