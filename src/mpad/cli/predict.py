"""`mpad predict`: label new documents."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpad.cli.data import ModelFolder, TextColumn, unlabelled
from mpad.cli.output import Format, FormatOption, print_rows

if TYPE_CHECKING:
    from mpad.runtime import Runtime
    from mpad.text_model import TextModel


def run(
    model: ModelFolder,
    data: Annotated[str, typer.Argument(help="A data file, or - for standard input, one document a line.")] = "-",
    text: TextColumn = None,
    form: FormatOption = Format.table,
    proba: Annotated[bool, typer.Option("--proba", help="Print the probability of every class.")] = False,
    device: Annotated[str, typer.Option(help="cpu answers by NumPy alone; cuda or auto wait for torch.")] = "cpu",
) -> None:
    """Label documents: one row each, in their order.

    Example: `mpad predict my-model new.csv --format csv > labels.csv`

    Example: `echo "a moving film" | mpad predict my-model`
    """
    texts = unlabelled(data, text)
    import numpy as np

    from mpad.cli.progress import in_chunks

    loaded = _load(model, device)
    logits = np.concatenate([loaded.logits([]), *[loaded.logits(chunk) for chunk in in_chunks(texts)]])
    probabilities = loaded.labels.probabilities(logits)
    classes = [str(label) for label in loaded.labels.classes]
    chosen = loaded.labels.decide(logits)
    rows = []
    for document, label, row in zip(texts, chosen, probabilities.tolist(), strict=True):
        if loaded.labels.multilabel:
            named = " ".join(name for name, on in zip(classes, label, strict=True) if on)
        else:
            named = str(label)
        rows.append([named, max(row), *(row if proba else []), document])
    print_rows(["label", "probability", *([f"p({name})" for name in classes] if proba else []), "text"], rows, form)


def _load(model: Path, device: str) -> "Runtime | TextModel":
    """Read the model by the way that starts fastest: torch alone takes two seconds to import."""
    from mpad.model_folder import read_folder

    if device == "cpu" and read_folder(model).kind == "mpad":
        from mpad import runtime

        return runtime.load(model)
    from mpad.store import load_model
    from mpad.training.device import find_device

    return load_model(model, find_device(device))[0]
