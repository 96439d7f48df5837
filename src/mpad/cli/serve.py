"""`mpad serve`: HTTP API and web app for models."""

import errno
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from socket import socket
from typing import Annotated

import typer
from typer import Argument, Option

from mpad.cli.inputs import OwnTokenizer, Reader
from mpad.files.encoding import decode

_MOST_REFERENCE = 2_000  # documents


def run(
    models: Annotated[list[str], Argument(help="Folders of models, or NAME=FOLDER; the first is the default.")],
    host: Annotated[
        str, Option(help="Address to listen on; by default reachable from this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 selects a free one.")] = 8000,
    workers: Annotated[
        int, Option(min=1, help="Worker processes on one port; they share the memory of the model tables.")
    ] = 1,
    api_key_file: Annotated[
        Path | None, Option(help="File whose first line is the API key that requests must send.")
    ] = None,
    origin: Annotated[list[str] | None, Option(help="Let pages of this origin use the API (CORS). Repeatable.")] = None,
    max_body: Annotated[int, Option(help="Maximal request size in bytes.")] = 4 << 20,
    max_documents: Annotated[int, Option(help="Maximal number of documents per request.")] = 1_000,
    max_characters: Annotated[int, Option(help="Maximal length of a document in characters.")] = 200_000,
    max_explained: Annotated[int, Option(help="Maximal length of an explained document in characters.")] = 50_000,
    max_connections: Annotated[int, Option(help="Maximal number of concurrent connections per worker.")] = 1_000,
    request_timeout: Annotated[
        int, Option(min=1, help="Seconds for a client to send a complete request, and to read the response.")
    ] = 30,
    reload_every: Annotated[
        float, Option(min=0, help="Seconds between checks for changed model folders; 0 checks on SIGHUP only.")
    ] = 0,
    stop_within: Annotated[
        int, Option(min=1, help="Seconds to finish running requests when stopping; later ones are aborted.")
    ] = 30,
    allow_host: Annotated[
        list[str] | None,
        Option(
            help="Allowed name in the Host header; by default names of this machine, or any with --host. Repeatable."
        ),
    ] = None,
    examples: Annotated[
        Path | None,
        Option(help="Labeled documents to offer in the web app, three per class; by default those in the model."),
    ] = None,
    against: Annotated[
        str | None,
        Option(help="Documents, such as those trained on, whose labels, unknown words and confidence become metrics."),
    ] = None,
    tokenizer: OwnTokenizer = None,
    quiet: Annotated[bool, Option("--quiet", help="Do not log requests.")] = False,
) -> None:
    """Serve models over HTTP: /predict, /explain, /what-if, /info, /healthz, /readyz, /metrics, and a web app at /.

    Example: `mpad serve my-model`

    Example: `mpad serve good=my-model other=their-model --port 9000 --api-key-file key.txt`

    Example: `mpad serve my-model --against train.csv`

    Example: `curl -s localhost:8000/predict -H 'content-type: application/json' -d '{"texts": ["a moving film"]}'`

    The API is described at /openapi.json. Each request is logged to standard error as a line of JSON, without its text.
    A replaced model folder is loaded on SIGHUP, or with --reload-every, while the old model still serves.
    Ctrl-C or SIGTERM stops the server once running requests are finished, or after --stop-within seconds.
    """
    from mpad.extras import require

    for needed in ("threadpoolctl", "uvicorn", "fastapi", "prometheus_client"):
        require(needed, extra="serve")
    from mpad.errors import InputError
    from mpad.server.models import named_folders
    from mpad.server.protocol import listen
    from mpad.server.settings import Limits, Settings
    from mpad.server.workers import serve

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
        example_pairs = [] if examples is None else Reader().documents(str(examples), "train").examples()
        reference = [] if against is None else _sample(Reader().texts(against))
        options = limits, key, origin or (), _allowed_hosts(host, allow_host), quiet, stop_within, workers, reload_every
        settings = Settings(models, tokenizer, example_pairs, reference, *options)
        serve(settings, sockets, lambda: _announce(named_folders(models), sockets))


def _sample(texts: list[str]) -> list[str]:
    """Return reference documents at even distances: enough for shares that are right to a point or two."""
    return texts[:: max(1, len(texts) // _MOST_REFERENCE)]


def _announce(names: Iterable[str], sockets: list[socket]) -> None:
    for listening in sockets:
        address, number = listening.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        typer.echo(f"serving {', '.join(names)} at http://{shown}:{number}", err=True)


def _allowed_hosts(host: str, allowed: list[str] | None) -> set[str] | None:
    """Return the allowed names in the Host header; None allows any."""
    own = {"localhost", "127.0.0.1", "::1", host.lower()}
    if allowed:
        return own | {name.lower() for name in allowed}
    return own if host in ("localhost", "::1") or host.startswith("127.") else None
