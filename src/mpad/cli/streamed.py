"""`mpad fit --stream`: train on files that need not fit into memory, by one process or by several."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mpad.cli.inputs import column_facts, is_named, said, show_columns
from mpad.data.readers import Files, choose_columns
from mpad.errors import InputError

if TYPE_CHECKING:
    from mpad.estimator.classifier import MPADClassifier
    from mpad.estimator.text_classifier import TextClassifier

_LARGE = 1 << 30  # bytes


def streams(data: Files, asked: bool | None, reading: dict[str, Any]) -> bool:
    """Whether DATA is read from disk as training goes: where it is asked for or large, and under torchrun.

    `reading` are options that say how; elsewhere they are refused.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        if asked is False:
            raise InputError("several processes read DATA from disk as training goes: leave --no-stream out")
        return True
    streamed = bool(asked)
    if asked is None and not (isinstance(data, str) and is_named(data)):
        from mpad.data.streams import total_size

        streamed = total_size(data) >= _LARGE
    if reading and not streamed:
        name = next(iter(reading)).replace("_", "-")
        raise InputError(f"--{name} goes with --stream; these documents are read into memory")
    return streamed


def run_stream(
    classifier: "MPADClassifier",
    data: Files,
    out: Path,
    columns: tuple[str | None, list[str] | None, str | None],
    reading: dict[str, Any],
    resume: bool,
    refused: list[str],
) -> None:
    """Fit, save and say how it went; of several processes, the first alone writes."""
    from mpad.estimator.training_card import closing_lines
    from mpad.training.stream_options import StreamOptions

    if refused:
        raise InputError(f"--{refused[0].replace('_', '-')} is for documents in memory; leave it out, or --no-stream")
    text, label, separator = columns
    chosen = choose_columns(data, text, label)
    show_columns(data, chosen)
    checkpoint = out.resolve().with_name(f"{out.resolve().name}.checkpoint")
    first = int(os.environ.get("RANK", "0")) == 0
    classifier.set_params(verbose=True).fit_stream(  # a bar, or lines where nobody looks on
        data,
        text=text,
        label=label[0] if label and len(label) == 1 else label,
        separator=separator,
        options=StreamOptions(**reading),
        checkpoint=checkpoint,
        resume=resume,
        keep_interrupted=True,
    )
    classifier.set_params(verbose="auto")
    if not first:
        return
    classifier.card_ |= {"data": said(data), **column_facts(chosen, separator)}
    classifier.save(out)
    checkpoint.unlink(missing_ok=True)
    for line in [*kept_epoch(classifier), *closing_lines(classifier)]:
        typer.echo(line, err=True)
    typer.echo(f'saved to {out}; next: mpad predict {out} DATA, mpad explain {out} "some text"', err=True)


def kept_epoch(classifier: "TextClassifier") -> list[str]:
    """Return a line about the epoch that was kept; none if that is the last, as planned."""
    if classifier.interrupted_:
        return [f"interrupted; kept epoch {classifier.best_epoch_}"]
    return [] if classifier.best_epoch_ == classifier.n_iter_ else [f"kept epoch {classifier.best_epoch_}"]
