"""`mpad serve`: a model over HTTP, with a page to use it."""

import gc
from pathlib import Path
from typing import Annotated

import typer


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
    quiet: Annotated[bool, typer.Option("--quiet", help="No line for every request.")] = False,
) -> None:
    """Serve models over HTTP: /predict, /explain, /what-if, /info, /healthz, and a page at /.

    Example: `mpad serve my-model`

    Example: `mpad serve good=my-model other=their-model --port 9000 --api-key-file key.txt`

    Example: `curl -s localhost:8000/predict -H 'content-type: application/json' -d '{"texts": ["a moving film"]}'`

    The API is described at /openapi.json. Standard error gets a line of JSON for every request, never a document.
    Ctrl-C, or SIGTERM, stops it once what was begun is answered.
    """
    from mpad.extras import require

    threads = require("threadpoolctl", extra="serve")
    uvicorn = require("uvicorn", extra="serve")
    require("fastapi", extra="serve")
    from mpad.errors import InputError
    from mpad.io.encoding import decode
    from mpad.server.app import make_app
    from mpad.server.door import to_stderr
    from mpad.server.limits import Limits
    from mpad.server.served import load_all

    key = None
    if api_key_file is not None:
        key = decode(str(api_key_file), api_key_file.read_bytes()).partition("\n")[0].strip()
        if not key:
            raise InputError(f"{api_key_file}: expected an API key in the first line, found an empty one")
    limits = Limits(max_body, max_documents, max_characters, max_explained)
    threads.threadpool_limits(1)  # one thread answers; BLAS threads of its own would only fight over the cores
    served = load_all(models)
    app = make_app(served, limits, key, origin, None if quiet else to_stderr)
    gc.collect()
    gc.freeze()  # the models stay: no need to look through them at every collection
    config = uvicorn.Config(app, host=host, port=port, log_level="error", access_log=False, server_header=False)
    server = uvicorn.Server(config)
    started = server.startup

    async def announce(*arguments: object, **options: object) -> None:
        await started(*arguments, **options)
        for listening in (one for part in server.servers for one in part.sockets):
            address, number = listening.getsockname()[:2]
            shown = f"[{address}]" if ":" in address else address
            typer.echo(f"serving {', '.join(served)} at http://{shown}:{number}", err=True)

    server.startup = announce
    server.run()
