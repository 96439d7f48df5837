"""`mpad info`: describe a model folder or this installation."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from mpad.cli.inputs import OwnTokenizer
from mpad.cli.output import print_json, print_rows
from mpad.errors import MissingExtra


def run(
    model: Annotated[Path | None, Argument(help="Folder of a fitted model; by default, this installation.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print as JSON.")] = False,
    tokenizer: OwnTokenizer = None,
) -> None:
    """Describe a fitted model or an encoder: classes, vocabulary, network, format, training data and scores.

    Without a model: versions, compiled code, threads, GPU and precision of this installation.

    Example: `mpad info my-model`

    Example: `mpad info`
    """
    if model is None:
        from mpad.environment import environment

        _print_facts(dict(environment()), "this installation", as_json)
        return
    from mpad.encoder.encoder import KIND, Encoder, load_encoder
    from mpad.estimator.classifier import TextClassifier
    from mpad.estimator.training_card import model_facts
    from mpad.paper import zoo
    from mpad.storage.model_folder import open_model

    files = open_model(model, lambda files: files)
    checked = "none: written before there were any" if files.sums is None else f"right, of {len(files.sums)} files"
    facts: dict[str, Any] = {"format": files.config["format"], "written by": f"mpad {files.config['mpad']}"}
    facts |= {"checksums": checked, **{name.replace("_", " "): value for name, value in files.card().items()}}
    try:
        loaded = load_encoder(model) if files.kind == KIND else zoo.load(model, "cpu", tokenizer)
    except MissingExtra as error:
        facts |= {"model": files.kind, "note": str(error)}
    else:
        if isinstance(loaded, Encoder):
            shape = {"words": len(loaded.vocabulary), "width of a vector": loaded.width, "hidden": loaded.config.hidden}
            facts = {"model": KIND, **shape, "steps": loaded.config.steps, **facts}
        elif isinstance(loaded, TextClassifier):
            own = {"preset": getattr(loaded, "preset", None), "best epoch": loaded.best_epoch_}
            facts = {**model_facts(loaded.model_), **own, **facts}
        else:
            classes = [str(label) for label in loaded.classes_]
            facts = {"model": loaded.kind, "classes": classes, **loaded.get_params(), **facts}
    size = sum(file.stat().st_size for file in model.iterdir() if file.is_file())
    facts["megabytes"] = round(size / 1e6, 2)
    _print_facts(facts, str(model), as_json)


def _print_facts(facts: dict[str, Any], title: str, as_json: bool) -> None:
    if as_json:
        print_json(facts)
        return
    print_rows(["", title], [[name, _format_value(value)] for name, value in facts.items()])


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value) if all(isinstance(one, str) for one in value) else f"{len(value):,}"
    return str(value)
