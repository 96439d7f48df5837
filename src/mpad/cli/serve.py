"""`mpad serve`: a model over HTTP, with a page to use it."""

import errno
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from socket import socket
from typing import Annotated

import typer

from mpad.cli.inputs import OwnTokenizer, labelled, pick_examples
from mpad.files.encoding import decode


def run(
    models: Annotated[
        list[str],
        typer.Argument(help="Folders of fitted models, or NAME=FOLDER; the first answers where none is named."),
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; only this machine unless you say otherwise.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any that is free.")] = 8000,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes that answer on one port; they share the memory of a model's tables.")
    ] = 1,
    api_key_file: Annotated[
        Path | None, typer.Option(help="Ask for the key in this file (first line) on every request.")
    ] = None,
    origin: Annotated[
        list[str] | None, typer.Option(help="Let pages of this origin call the API (CORS); repeat for more.")
    ] = None,
    max_body: Annotated[int, typer.Option(help="Largest request, in bytes.")] = 4 << 20,
    max_documents: Annotated[int, typer.Option(help="Most documents in one request.")] = 1_000,
    max_characters: Annotated[int, typer.Option(help="Longest document, in characters.")] = 200_000,
    max_explained: Annotated[int, typer.Option(help="Longest document that is explained, in characters.")] = 50_000,
    max_connections: Annotated[int, typer.Option(help="Most connections at once, of each worker.")] = 1_000,
    request_timeout: Annotated[
        int, typer.Option(min=1, help="Seconds in which a request must be there whole, and its answer be read.")
    ] = 30,
    reload_every: Annotated[
        float, typer.Option(min=0, help="Look for changed model folders every so many seconds; 0: on SIGHUP alone.")
    ] = 0,
    stop_within: Annotated[
        int, typer.Option(min=1, help="Seconds in which a stop answers what was begun; the rest is cut off.")
    ] = 30,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Name by which the server may be asked for; by default this machine's own, or any with --host."
        ),
    ] = None,
    examples: Annotated[
        Path | None, typer.Option(help="Labelled documents that the page offers to try; three a class.")
    ] = None,
    tokenizer: OwnTokenizer = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No line for every request.")] = False,
) -> None:
    """Serve models over HTTP: /predict, /explain, /what-if, /info, /healthz, /readyz, /metrics, and a page at /.

    Example: `mpad serve my-model`

    Example: `mpad serve good=my-model other=their-model --port 9000 --api-key-file key.txt`

    Example: `curl -s localhost:8000/predict -H 'content-type: application/json' -d '{"texts": ["a moving film"]}'`

    The API is described at /openapi.json. Standard error gets a line of JSON for every request, never a document.
    A folder that a new model has replaced is loaded on SIGHUP, or with --reload-every, while the old one answers.
    Ctrl-C, or SIGTERM, stops it once what was begun is answered, or after --stop-within seconds.
    """
    from mpad.extras import require

    for needed in ("threadpoolctl", "uvicorn", "fastapi", "prometheus_client"):
        require(needed, extra="serve")
    from mpad.errors import InputError
    from mpad.server.limits import Limits
    from mpad.server.models import named_folders
    from mpad.server.protocol import listen
    from mpad.server.workers import Settings, serve

    key = None
    if api_key_file is not None:
        key = decode(str(api_key_file), api_key_file.read_bytes()).partition("\n")[0].strip()
        if not key:
            raise InputError(f"{api_key_file}: expected an API key in the first line, found an empty one")
    limits = Limits(
        max_body, max_documents, max_characters, max_explained, connections=max_connections, seconds=request_timeout
    )
    try:
        sockets = listen(host, port)
    except OSError as error:
        why = "another program uses it" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise InputError(f"port {port} of {host} cannot be listened on: {why}; choose another by --port") from None
    closing = ExitStack()
    for one in sockets:
        closing.enter_context(one)
    with closing:
        shown = [] if examples is None else pick_examples(*labelled(str(examples), None, None, "train"))
        asked = limits, key, origin or (), _hosts(host, allow_host), quiet, stop_within, workers, reload_every
        settings = Settings(models, tokenizer, shown, *asked)
        serve(settings, sockets, lambda: _announce(named_folders(models), sockets))


def _announce(names: Iterable[str], sockets: list[socket]) -> None:
    for listening in sockets:
        address, number = listening.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        typer.echo(f"serving {', '.join(names)} at http://{shown}:{number}", err=True)


def _hosts(host: str, allowed: list[str] | None) -> set[str] | None:
    """Names that the Host header may have; None for any."""
    own = {"localhost", "127.0.0.1", "::1", host.lower()}
    if allowed:
        return own | {name.lower() for name in allowed}
    return own if host in ("localhost", "::1") or host.startswith("127.") else None
