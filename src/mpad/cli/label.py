"""`mpad label`: label documents in the browser, those first that help most."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from mpad.cli.inputs import Data, OwnTokenizer, Reader, TextColumn
from mpad.cli.output import check_new


def run(
    data: Data,
    out: Annotated[
        Path, Option("--out", "-o", help="Table of labels to write (.csv); continued if it is there already.")
    ] = Path("labels.csv"),
    model: Annotated[Path | None, Option(help="Folder of a model to start from; it is adjusted to the labels.")] = None,
    names: Annotated[
        list[str] | None,
        Option("--class", help="Name of a class, or NAME=DESCRIPTION. Repeatable; more can be added on the page."),
    ] = None,
    text: TextColumn = None,
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(help="Port to listen on; 0 for a free one.")] = 8001,
    tokenizer: OwnTokenizer = None,
) -> None:
    """Label documents in the browser: those first that help the model most.

    Example: `mpad label tickets.csv --class refund --class 'bug=something does not work'`

    Example: `mpad label tickets.csv --model my-model --out labels.csv`

    Documents come in batches of 10, uncertain ones first and different from each other, with the model's suggestion and
    the words behind it. Keys 1 to 9 label, Enter takes the suggestion. After each batch the model learns in the
    background, and the page shows its accuracy by cross-validation, until the curve is flat.

    Every label is on disk before the next document appears: OUT has the current labels, OUT.log every label given so
    far. Ctrl-C ends the session, and the same command continues it. Then: `mpad fit labels.csv --out my-model`.
    """
    from mpad.extras import require

    for needed in ("uvicorn", "fastapi"):
        require(needed, extra="serve")
    check_new(out, True, (".csv",))
    reader = Reader.of(text, model=model)
    documents = reader.unlabeled_documents(data)
    import uvicorn

    from mpad.errors import InputError
    from mpad.estimator.classifier import MPADClassifier
    from mpad.labeling.journal import Journal
    from mpad.labeling.session import LabelingSession
    from mpad.server.labeling import make_label_app
    from mpad.server.protocol import listen
    from mpad.server.settings import Settings

    classes, descriptions = _parse_names(names or [])
    started = None if model is None else MPADClassifier.load(model, "cpu", tokenizer)
    try:
        sockets = listen(host, port)
    except OSError as error:
        raise InputError(f"port {port} of {host} cannot be listened on: {error.strerror or error}") from None
    with ExitStack() as closing:
        for one in sockets:
            closing.enter_context(one).listen()  # a browser that comes too early waits
        journal = closing.enter_context(Journal(out))
        options = {"ids": documents.ids, "descriptions": descriptions, "model": started}
        session = LabelingSession(documents.texts, journal, classes, **options)  # type: ignore[arg-type]
        closing.callback(session.close)
        address, number = sockets[0].getsockname()[:2]
        typer.echo(f"{len(session.labels):,} of {len(session.texts):,} documents have labels", err=True)
        typer.echo(f"labeling at http://{address}:{number}", err=True)
        hosts = {"localhost", "127.0.0.1", "::1", host.lower()}
        config = uvicorn.Config(make_label_app(session, Settings(hosts=hosts)), log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets)
        labeled = len(session.labels)
    typer.echo(f"{labeled:,} labels in {out}; next: mpad fit {out} --out MODEL", err=True)


def _parse_names(names: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the names of classes, and descriptions by name."""
    parts = [(name.strip(), description.strip()) for name, _, description in (one.partition("=") for one in names)]
    return [name for name, _ in parts if name], {name: text for name, text in parts if name and text}
