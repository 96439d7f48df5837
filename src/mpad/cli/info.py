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
    from mpad import zoo
    from mpad.text_classifier import TextClassifier

    loaded = zoo.load(model, "cpu")
    size = sum(file.stat().st_size for file in model.iterdir() if file.is_file())
    if isinstance(loaded, TextClassifier):
        facts = {**loaded.model_.summary(), "preset": getattr(loaded, "preset", None), "best epoch": loaded.best_epoch_}
    else:
        facts = {"model": loaded.kind, "classes": [str(label) for label in loaded.classes_], **loaded.get_params()}
    facts["megabytes"] = round(size / 1e6, 2)
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    shown = {name: ", ".join(value) if isinstance(value, list) else value for name, value in facts.items()}
    print_rows(["", str(model)], [[name, str(value)] for name, value in shown.items()], Format.table)
