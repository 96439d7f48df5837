"""`mpad explain`: why a document got its label."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mpad.cli.data import ModelFolder


class View(StrEnum):
    """How to show an explanation."""

    terminal = "terminal"
    json = "json"
    html = "html"


def run(
    model: ModelFolder,
    text: Annotated[str, typer.Argument(help="The document, or - for standard input.")],
    label: Annotated[str | None, typer.Option(help="Class to explain. Default: the predicted one.")] = None,
    method: Annotated[str, typer.Option(help="occlusion or attention.")] = "occlusion",
    view: Annotated[View, typer.Option("--format", "-f", help="How to show it.")] = View.terminal,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write to this file instead.")] = None,
) -> None:
    """Explain one answer: words, pairs of words and sentences that speak for or against a class.

    Example: `mpad explain my-model "not a good film"`

    Example: `mpad explain my-model - --format html --out why.html < review.txt`
    """
    import sys

    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    from mpad.explain import explain
    from mpad.store import load_model

    loaded, _ = load_model(model)
    explanation = explain(loaded, text, label, method)
    if view is View.terminal and out is None:
        explanation.show()
        return
    content = (
        explanation.to_html()
        if view is View.html or (out is not None and out.suffix == ".html")
        else json.dumps(explanation.to_dict(), ensure_ascii=False) + "\n"
    )
    if out is None:
        sys.stdout.write(content)
    else:
        out.write_text(content, encoding="utf-8")
        typer.echo(f"written to {out}", err=True)
