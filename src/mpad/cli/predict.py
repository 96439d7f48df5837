"""`mpad predict`: label new documents."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpad.cli.inputs import ModelFolder, OwnTokenizer, TextColumn, unlabelled
from mpad.cli.output import Format, FormatOption, print_rows

if TYPE_CHECKING:
    from mpad.pipeline.text_model import TextModel
    from mpad.runtime import Pipeline


def run(
    model: ModelFolder,
    data: Annotated[str, typer.Argument(help="A data file, or - for standard input, one document a line.")] = "-",
    text: TextColumn = None,
    form: FormatOption = Format.table,
    proba: Annotated[bool, typer.Option("--proba", help="Print the probability of every class.")] = False,
    reject_below: Annotated[
        float | None, typer.Option(min=0, max=1, help="No label where its probability is below that.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu answers by NumPy alone; cuda or auto wait for torch.")] = "cpu",
    tokenizer: OwnTokenizer = None,
) -> None:
    """Label documents: one row each, in their order.

    Example: `mpad predict my-model new.csv --format csv > labels.csv`

    Example: `echo "a moving film" | mpad predict my-model`

    Example: `mpad predict my-model new.csv --reject-below 0.8`
    """
    texts = unlabelled(data, text)
    from mpad.cli.progress import in_chunks

    classes, chosen, probabilities = _answers(model, device, tokenizer, list(in_chunks(texts)))
    rows = []
    for document, label, row in zip(texts, chosen, probabilities, strict=True):
        rejected = reject_below is not None and row and max(row) < reject_below
        rows.append([None if rejected else label, *([max(row), *(row if proba else [])] if row else []), document])
    scored = ["probability", *([f"p({name})" for name in classes] if proba else [])] if any(probabilities) else []
    print_rows(["label", *scored, "text"], rows, form)


def _answers(
    model: Path, device: str, tokenizer: str | None, chunks: list[list[str]]
) -> tuple[list[str], list[str], list[list[float]]]:
    """Classes, and of each document its label (or labels) and, where the model has them, its probabilities."""
    from mpad.registry import find_kind
    from mpad.storage.model_folder import read_kind

    entry = find_kind(read_kind(model))
    if device == "cpu" and entry is not None and entry.without_torch:  # torch alone takes two seconds to import
        from mpad import runtime

        return _from_logits(runtime.load(model, tokenizer), chunks)
    from mpad import zoo
    from mpad.estimators.text_classifier import TextClassifier

    result = zoo.load(model, device, tokenizer)
    if isinstance(result, TextClassifier):
        return _from_logits(result.model_, chunks)
    named = [str(label) for chunk in chunks for label in result.predict(chunk)]
    probabilities: list[list[float]] = [[] for _ in named]
    if entry is not None and entry.probabilities:
        probabilities = [row for chunk in chunks for row in result.predict_proba(chunk).tolist()]
    return [str(label) for label in result.classes_], named, probabilities


def _from_logits(
    model: "Pipeline | TextModel", chunks: list[list[str]]
) -> tuple[list[str], list[str], list[list[float]]]:
    import numpy as np

    labels, logits = model.labels, np.concatenate([model.logits([]), *[model.logits(chunk) for chunk in chunks]])
    classes = [str(label) for label in labels.classes]
    decided = labels.decide(logits)
    if labels.multilabel:
        named = [" ".join(name for name, on in zip(classes, row, strict=True) if on) for row in decided]
    else:
        named = [str(label) for label in decided]
    return classes, named, labels.probabilities(logits).tolist()
