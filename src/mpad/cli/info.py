"""`mpad info`: what is in a model folder."""

from typing import Annotated, Any

import typer

from mpad.cli.data import ModelFolder, OwnTokenizer
from mpad.cli.output import Format, print_rows
from mpad.cli.output import as_json as as_json_line
from mpad.errors import MissingExtra


def run(
    model: ModelFolder,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
    tokenizer: OwnTokenizer = None,
) -> None:
    """Describe a fitted model: classes, vocabulary, network, format, when and on what it was trained, and how well.

    Example: `mpad info my-model`
    """
    from mpad import zoo
    from mpad.model_folder import open_model
    from mpad.text_classifier import TextClassifier

    files = open_model(model, lambda files: files)
    checked = "none: written before there were any" if files.sums is None else f"right, of {len(files.sums)} files"
    facts: dict[str, Any] = {"format": files.config["format"], "written by": f"mpad {files.config['mpad']}"}
    facts |= {"checksums": checked, **{name.replace("_", " "): value for name, value in files.card().items()}}
    try:
        loaded = zoo.load(model, "cpu", tokenizer)
    except MissingExtra as error:
        facts |= {"model": files.kind, "note": str(error)}
    else:
        if isinstance(loaded, TextClassifier):
            own = {"preset": getattr(loaded, "preset", None), "best epoch": loaded.best_epoch_}
            facts = {**loaded.model_.summary(), **own, **facts}
        else:
            classes = [str(label) for label in loaded.classes_]
            facts = {"model": loaded.kind, "classes": classes, **loaded.get_params(), **facts}
    size = sum(file.stat().st_size for file in model.iterdir() if file.is_file())
    facts["megabytes"] = round(size / 1e6, 2)
    if as_json:
        typer.echo(as_json_line(facts))
        return
    shown = {name: ", ".join(value) if isinstance(value, list) else value for name, value in facts.items()}
    print_rows(["", str(model)], [[name, str(value)] for name, value in shown.items()], Format.table)
