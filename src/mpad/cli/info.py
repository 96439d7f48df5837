"""`mpad info`: what is in a model folder."""

import json
from typing import Annotated

import typer

from mpad.cli.data import ModelFolder
from mpad.cli.output import Format, print_rows


def run(
    model: ModelFolder,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Describe a fitted model: its classes, vocabulary, network and size.

    Example: `mpad info my-model`
    """
    from mpad.store import load_model

    loaded, estimator = load_model(model)
    size = sum(file.stat().st_size for file in model.iterdir() if file.is_file())
    facts = {
        **loaded.summary(),
        "preset": estimator.get("preset"),
        "best epoch": estimator.get("best_epoch_"),
        "megabytes": round(size / 1e6, 2),
    }
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    shown = {name: ", ".join(value) if isinstance(value, list) else value for name, value in facts.items()}
    print_rows(["", str(model)], [[name, str(value)] for name, value in shown.items()], Format.table)
