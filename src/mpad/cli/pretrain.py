"""`mpad pretrain`: train an encoder to imitate sentence transformers."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from mpad.cli.inputs import DataFiles, Device, Force, Reader, Seed, TextColumn, is_large, text_column
from mpad.cli.options import Parameters, expand_parameters
from mpad.cli.output import check_new
from mpad.data.readers import Files
from mpad.errors import InputError

_SIZES = "hidden steps vector_width read_width directed words pieces tokenizer"
_TRAINING = "passages rounds batch_size learning_rate contrast"


@expand_parameters
def run(
    files: DataFiles,
    out: Annotated[Path, Option("--out", "-o", help="Folder to write the encoder to.")],
    teacher: Annotated[
        list[str],
        Option(help="minilm, use, or the folder of a sentence-transformers model. Repeat it for several teachers."),
    ],
    text: TextColumn = None,
    teacher_weight: Annotated[
        list[float] | None,
        Option(help="Weight of a teacher in the loss, in the order of --teacher; all 1 if left out."),
    ] = None,
    start: Annotated[
        str | None, Option("--from", help="Encoder to continue from, auto for the one that ships with mpad.")
    ] = None,
    *,
    sizes: Annotated[dict[str, Any], Parameters("mpad.encoder.pretraining:PretrainConfig", _SIZES)],
    training: Annotated[dict[str, Any], Parameters("mpad.encoder.pretraining:PretrainConfig", _TRAINING)],
    cache: Annotated[Path | None, Option(help="Folder for the teachers' vectors; by default in ~/.cache/mpad.")] = None,
    device: Device = "auto",
    seed: Seed = 0,
    resume: Annotated[bool, Option("--resume", help="Resume interrupted training from its checkpoint.")] = False,
    force: Force = False,
) -> None:
    """Train an encoder on texts without labels: a graph network that imitates sentence transformers.

    Example: `mpad pretrain texts.csv --teacher minilm --out my-encoder`

    Example: `mpad pretrain tickets.csv --teacher minilm --from auto --passages 500000 --out ticket-encoder`

    Example: `torchrun --nproc-per-node 2 -m mpad pretrain texts.csv --teacher minilm --out my-encoder`

    Example: `mpad fit train.csv --encoder my-encoder --out my-model`

    The teachers' vectors are computed once and cached; with MiniLM on two cores, about 60 passages per second.

    After every round a checkpoint is written to OUT.checkpoint: the same command with --resume continues from it.
    """
    checkpoint = out.resolve().with_name(f"{out.resolve().name}.checkpoint")
    from mpad.storage.model_folder import check_destination

    check_destination(out)
    check_new(out, force or (resume and checkpoint.exists()))
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    from mpad.encoder import PretrainConfig, load_encoder, pretrain
    from mpad.training.progress import epoch_bar

    given = [name for name, value in sizes.items() if value != getattr(PretrainConfig, name)]
    if start is not None and given:
        raise InputError(f"--{given[0].replace('_', '-')} is that of the encoder to continue from; leave it out")
    earlier = None if start is None else load_encoder(start)
    texts = _texts(files[0] if len(files) == 1 else files, text)
    config = PretrainConfig(**sizes, **training, seed=seed)
    if resume and not checkpoint.exists():
        typer.echo(f"{checkpoint}: no checkpoint; starting with the first round", err=True)
    try:
        with epoch_bar(measure="cosine", unit="round") as sink:
            encoder = pretrain(
                texts,
                teacher,
                config,
                teacher_weights=teacher_weight or None,
                start=earlier,
                device=device,
                cache=cache,
                checkpoint=checkpoint,
                resume=resume,
                sink=sink,
                shown=True,
                name=out.name,
            )
    except KeyboardInterrupt:
        typer.echo("stopped; the same command with --resume continues after the last round", err=True)
        raise
    if int(os.environ.get("RANK", "0")) > 0:
        return  # of several processes, the first writes the encoder
    encoder.save(out)
    checkpoint.unlink(missing_ok=True)
    cosines = ", ".join(f"{name} {cosine:.3f}" for name, cosine in encoder.card["cosines"].items())
    few = "too few passages: none was held out, so nobody knows how good this encoder is"
    typer.echo(f"cosine to the teachers on held-out passages: {cosines}" if cosines else few, err=True)
    more = f"mpad fit DATA --encoder {out} --out MODEL, mpad embed DATA --encoder {out} --out VECTORS"
    typer.echo(f"saved to {out}; next: {more}", err=True)


def _texts(data: Files, text: list[str] | None) -> Iterable[str]:
    """Return the texts of files; large ones are read as they are used."""
    column = text_column(text)
    if is_large(data):
        from mpad.data.streams import Columns, list_pieces

        pieces = list_pieces(data, Columns(column, need_labels=False))
        return (one for piece in pieces for chunk in piece.chunks() for one in chunk.texts)
    sources = [data] if isinstance(data, (str, Path)) else data
    return [one for source in sources for one in Reader(column).texts(str(source))]
