"""`mpad serve`: a model over HTTP, with a page to use it."""

import errno
import gc
import os
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from mpad.cli.inputs import OwnTokenizer
from mpad.io.encoding import decode


def run(
    models: Annotated[
        list[str],
        typer.Argument(help="Folders of fitted models, or NAME=FOLDER; the first answers where none is named."),
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; only this machine unless you say otherwise.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any that is free.")] = 8000,
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
    max_connections: Annotated[int, typer.Option(help="Most connections at once.")] = 1_000,
    request_timeout: Annotated[
        int, typer.Option(min=1, help="Seconds in which a request must be there whole, and its answer be read.")
    ] = 30,
    stop_within: Annotated[
        int, typer.Option(min=1, help="Seconds in which a stop answers what was begun; the rest is cut off.")
    ] = 30,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Name by which the server may be asked for; by default this machine's own, or any with --host."
        ),
    ] = None,
    tokenizer: OwnTokenizer = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No line for every request.")] = False,
) -> None:
    """Serve models over HTTP: /predict, /explain, /what-if, /info, /healthz, and a page at /.

    Example: `mpad serve my-model`

    Example: `mpad serve good=my-model other=their-model --port 9000 --api-key-file key.txt`

    Example: `curl -s localhost:8000/predict -H 'content-type: application/json' -d '{"texts": ["a moving film"]}'`

    The API is described at /openapi.json. Standard error gets a line of JSON for every request, never a document.
    Ctrl-C, or SIGTERM, stops it once what was begun is answered, or after --stop-within seconds.
    """
    from mpad.extras import require

    threads = require("threadpoolctl", extra="serve")
    uvicorn = require("uvicorn", extra="serve")
    require("fastapi", extra="serve")
    from mpad.errors import InputError
    from mpad.server.app import make_app
    from mpad.server.limits import Limits
    from mpad.server.middleware import to_stderr
    from mpad.server.models import load_all
    from mpad.server.protocol import limited_protocol, listen

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
        threads.threadpool_limits(1)  # one thread answers; BLAS threads of its own would only fight over the cores
        served = load_all(models, tokenizer)
        app = make_app(served, limits, key, origin, _hosts(host, allow_host), None if quiet else to_stderr)
        gc.collect()
        gc.freeze()  # the models stay: no need to look through them at every collection
        protocol = limited_protocol(limits.seconds, limits.connections)
        options = {"log_level": "error", "access_log": False, "server_header": False, "http": protocol, "ws": "none"}
        config = uvicorn.Config(app, timeout_graceful_shutdown=stop_within, **options)
        server = uvicorn.Server(config)
        started, stopped = server.startup, server.shutdown

        async def announce(*arguments: object, **options: object) -> None:
            await started(*arguments, **options)
            for listening in sockets:
                address, number = listening.getsockname()[:2]
                shown = f"[{address}]" if ":" in address else address
                typer.echo(f"serving {', '.join(served)} at http://{shown}:{number}", err=True)

        async def stop(*arguments: object, **options: object) -> None:
            # What runs on a thread cannot be cut off: if it is still at it by then, the process ends under it.
            last = threading.Timer(stop_within + 1, os._exit, (0,))
            last.daemon = True
            last.start()
            await stopped(*arguments, **options)

        server.startup, server.shutdown = announce, stop
        server.run(sockets)


def _hosts(host: str, allowed: list[str] | None) -> set[str] | None:
    """Names that the Host header may have; None for any."""
    own = {"localhost", "127.0.0.1", "::1", "", host.lower()}
    if allowed:
        return own | {name.lower() for name in allowed}
    return own if host in ("localhost", "::1") or host.startswith("127.") else None
