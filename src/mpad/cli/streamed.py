"""`mpad fit --stream`: train on files larger than memory, with one process or several."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mpad.cli.inputs import column_entries, describe_source, is_dataset_name, show_columns
from mpad.data.readers import Files, choose_columns
from mpad.errors import InputError

if TYPE_CHECKING:
    from mpad.estimator.classifier import MPADClassifier, TextClassifier

_LARGE = 1 << 30  # bytes


def should_stream(data: Files, requested: bool | None, options: dict[str, Any]) -> bool:
    """Return whether to read DATA from disk during training: on request, above 1 GB, and under torchrun.

    Raise InputError if `options` of streaming were given without it.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        if requested is False:
            raise InputError("several processes read DATA from disk during training: leave --no-stream out")
        return True
    streamed = bool(requested)
    if requested is None and not (isinstance(data, str) and is_dataset_name(data)):
        from mpad.data.streams import total_size

        streamed = total_size(data) >= _LARGE
    if options and not streamed:
        name = next(iter(options)).replace("_", "-")
        raise InputError(f"--{name} goes with --stream; these documents are read into memory")
    return streamed


def run_stream(
    classifier: "MPADClassifier",
    data: Files,
    out: Path,
    columns: tuple[str | None, list[str] | None, str | None],
    options: dict[str, Any],
    resume: bool,
    refused: list[str],
) -> None:
    """Fit and save a classifier and print its result; of several processes, only the first writes."""
    from mpad.estimator.training_card import closing_lines
    from mpad.training.stream import StreamOptions

    if refused:
        raise InputError(f"--{refused[0].replace('_', '-')} is for documents in memory; leave it out, or --no-stream")
    text, label, separator = columns
    chosen = choose_columns(data, text, label)
    show_columns(data, chosen)
    checkpoint = out.resolve().with_name(f"{out.resolve().name}.checkpoint")
    first = int(os.environ.get("RANK", "0")) == 0
    classifier.set_params(verbose=True).fit_stream(  # a bar on a terminal, otherwise lines
        data,
        text=text,
        label=label[0] if label and len(label) == 1 else label,
        separator=separator,
        options=StreamOptions(**options),
        checkpoint=checkpoint,
        resume=resume,
        keep_interrupted=True,
    )
    classifier.set_params(verbose="auto")
    if not first:
        return
    classifier.card_ |= {"data": describe_source(data), **column_entries(chosen, separator)}
    classifier.save(out)
    checkpoint.unlink(missing_ok=True)
    for line in [*epoch_lines(classifier), *closing_lines(classifier)]:
        typer.echo(line, err=True)
    typer.echo(f'saved to {out}; next: mpad predict {out} DATA, mpad explain {out} "some text"', err=True)


def epoch_lines(classifier: "TextClassifier") -> list[str]:
    """Return a line on the selected epoch; none if it is the last, as planned."""
    if classifier.interrupted_:
        return [f"interrupted; kept epoch {classifier.best_epoch_}"]
    return [] if classifier.best_epoch_ == classifier.n_iter_ else [f"kept epoch {classifier.best_epoch_}"]
