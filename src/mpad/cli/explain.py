"""`mpad explain`: why a document got its label."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mpad.cli.data import ModelFolder
from mpad.text.readers import decode


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
    view: Annotated[
        View | None, typer.Option("--format", "-f", help="How to show it. Default: terminal, or html for --out x.html.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write to this file instead.")] = None,
) -> None:
    """Explain one answer: words, pairs of words and sentences that speak for or against a class.

    Example: `mpad explain my-model "not a good film"`

    Example: `mpad explain my-model - --format html --out why.html < review.txt`
    """
    if text == "-":
        text = decode("standard input", sys.stdin.buffer.read())
    from mpad.explain import explain
    from mpad.explain.terminal import as_text
    from mpad.store import load_model

    loaded, _ = load_model(model)
    explanation = explain(loaded, text, label, method)
    if view is None:
        view = View.html if out is not None and out.suffix in (".html", ".htm") else View.terminal
    if view is View.terminal and out is None:
        explanation.show()
        return
    if view is View.html:
        content = explanation.to_html()
    elif view is View.json:
        content = json.dumps(explanation.to_dict(), ensure_ascii=False) + "\n"
    else:
        content = as_text(explanation)
    if out is None:
        sys.stdout.write(content)
    else:
        out.write_text(content, encoding="utf-8")
        typer.echo(f"written to {out}", err=True)
