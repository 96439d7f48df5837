"""The HTTP API: models by name, one or many documents, why, and what if."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.resources import files
from threading import Timer
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from pydantic_core import PydanticSerializationError, to_json
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from mpad._version import __version__
from mpad.server.batching import Batcher
from mpad.server.bodies import body_schema, read_body
from mpad.server.docs import docs_page
from mpad.server.errors import Problem
from mpad.server.limits import Limits
from mpad.server.metrics import CONTENT_TYPE, Metrics
from mpad.server.middleware import Door, to_stderr
from mpad.server.models import Served
from mpad.server.reload import Reloader
from mpad.server.schemas import (
    Error,
    ExplainRequest,
    ExplainResponse,
    Health,
    Info,
    PredictRequest,
    PredictResponse,
    Ready,
    WhatIfRequest,
)
from mpad.server.turns import Turns

_SCRIPTS = "app", "answer", "graph", "dom", "workspace", "overview", "labels", "table", "csv", "docs"
_FILES = {"/": "index.html", "/style.css": "style.css"} | {f"/{name}.js": f"{name}.js" for name in _SCRIPTS}
_FROM_PAGES = ["content-type", "x-api-key", "authorization", "traceparent"]  # headers that pages elsewhere may send
_READY = 5.0  # seconds in which a model answers one document
_MEASURED = 10.0  # seconds after which a worker notes its memory again
_KINDS = {"html": "text/html; charset=utf-8", "css": "text/css", "js": "text/javascript"}
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Error, "description": said}
    for status, said in {
        400: "not JSON",
        401: "no key, or a wrong one",
        404: "no such model",
        413: "too large",
        415: "not declared as JSON",
        422: "not what is expected",
        503: "too many documents are waiting",
    }.items()
}
_NOT_READY: dict[int | str, dict[str, Any]] = {503: {"model": Error, "description": "a model does not answer"}}


def _explained(model: Served, asked: ExplainRequest) -> dict[str, Any]:
    from mpad.server.serialize import serialize

    return serialize(model.name, model.explain(asked.text, asked.label, asked.method, asked.without))


class Api:
    """The endpoints over some models; the first is the one that is meant when none is named."""

    def __init__(self, models: Mapping[str, Served], limits: Limits, needs_key: bool) -> None:
        self._limits, self._needs_key = limits, needs_key
        self._importing: asyncio.Future[Any] | None = None
        self.counts = Metrics()
        self.batchers = {name: Batcher(model, limits.waiting, self.counts) for name, model in models.items()}
        for model in models.values():
            self.counts.model(model, there=True)
        self._slow, self._quick = Turns("explain"), Turns("what-if")  # a click never waits for a long explanation

    async def predict(self, request: Request) -> Response:
        """Label one document or many, with the probability of each class."""
        asked = await read_body(request, PredictRequest)
        texts = [asked.texts] if isinstance(asked.texts, str) else asked.texts
        self._check(texts, self._limits.characters)
        batcher = self._find(asked.model, request, len(texts))
        model = batcher.model
        if not texts:
            return _answer({"model": model.name, "predictions": []})
        result = await batcher.predict(texts)
        rows: list[Any] = [None] * len(texts) if result.probabilities is None else result.probabilities.tolist()
        shares: list[Any] = [None] * len(texts) if result.unknown is None else result.unknown.round(4).tolist()
        predictions = [
            {
                **_named(model, own),
                "probabilities": None if row is None else dict(zip(model.classes, row, strict=True)),
                "unknown": share,
            }
            for own, row, share in zip(result.labels, rows, shares, strict=True)
        ]
        return _answer({"model": model.name, "predictions": predictions})

    async def explain(self, request: Request) -> Response:
        """Say why: weights of words, pairs and sentences, and the graph of words, laid out to be drawn."""
        asked = await read_body(request, ExplainRequest)
        self._check([asked.text], min(self._limits.explained, self._limits.characters))
        model = self._find(asked.model, request, 1).model
        await self._explaining()
        return _answer(await self._slow.run(request, _explained, model, asked))

    async def what_if(self, request: Request) -> Response:
        """Label a document without some of its words and edges."""
        asked = await read_body(request, WhatIfRequest)
        self._check([asked.text], min(self._limits.explained, self._limits.characters))
        model = self._find(asked.model, request, 1).model
        edges = [(edge.source, edge.target) for edge in asked.edges]
        await self._explaining()
        row = await self._quick.run(request, model.without, asked.text, asked.words, edges)
        (own,) = model.labels_of(row[None])
        probabilities = dict(zip(model.classes, row.tolist(), strict=True))
        return _answer({"model": model.name, "predictions": [{**_named(model, own), "probabilities": probabilities}]})

    async def _explaining(self) -> None:
        """Import what explains, torch among it, once: two threads that begin to import it meet half a module."""
        if self._importing is None:
            loop = asyncio.get_running_loop()
            self._importing = loop.run_in_executor(None, import_module, "mpad.server.serialize")
        await asyncio.shield(self._importing)  # whoever leaves does not end it for the others

    async def healthz(self, request: Request) -> Response:
        """Whether the process is up; it says nothing of the models."""
        return _answer({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """Whether every model is loaded and answers a document."""
        batchers = list(self.batchers.values())
        answering = await asyncio.gather(*[batcher.answers(_READY) for batcher in batchers])
        late = [batcher.model.name for batcher, there in zip(batchers, answering, strict=True) if not there]
        if late:
            raise Problem(503, f"not ready: {', '.join(late)} did not answer within {_READY:g} seconds")
        return _answer({"status": "ready"})

    async def metrics(self) -> Response:
        """What was asked and answered so far, in Prometheus' text format; of all workers."""
        return Response(self.counts.page(), media_type=CONTENT_TYPE)

    async def info(self) -> Response:
        """What is served, and how much a request may ask for."""
        listed = [batcher.model.info() for batcher in self.batchers.values()]
        facts = {"version": __version__, "models": listed, "limits": vars(self._limits), "needs_key": self._needs_key}
        return _answer(facts)

    def swap(self, model: Served) -> Batcher:
        """Answer by this model from now on; what answered before under its name."""
        old = self.batchers[model.name]
        self.batchers[model.name] = Batcher(model, self._limits.waiting, self.counts)
        self.counts.model(old.model, there=False)
        self.counts.model(model, there=True)
        return old

    async def close(self) -> None:
        """Finish what was begun."""
        for batcher in self.batchers.values():
            await batcher.close()
        self._slow.close()
        self._quick.close()

    def _find(self, name: str | None, request: Request, documents: int) -> Batcher:
        if name is not None and name not in self.batchers:
            raise Problem(404, f"there is no model of that name; there are: {', '.join(self.batchers)}")
        batcher = next(iter(self.batchers.values())) if name is None else self.batchers[name]
        request.scope["logged"] = {"model": batcher.model.name, "documents": documents}
        return batcher

    def _check(self, texts: list[str], most: int) -> None:
        if len(texts) > self._limits.documents:
            raise Problem(413, f"{len(texts):,} documents in one request; at most {self._limits.documents:,} are taken")
        for place, text in enumerate(texts):
            if len(text) > most:
                raise Problem(413, f"document {place} has {len(text):,} characters; at most {most:,} are taken")


def make_app(
    models: Mapping[str, Served],
    limits: Limits | None = None,
    key: str | None = None,
    origins: Sequence[str] = (),
    hosts: Set[str] | None = None,
    log: Callable[[dict[str, Any]], None] | None = to_stderr,
    hard_stop: float | None = None,
    reload_every: float = 0,
    log_event: Callable[[dict[str, Any]], None] = to_stderr,
) -> FastAPI:
    """The app that serves these models, asked for by one of these names for its host, or by any.

    Their folders are looked at every `reload_every` seconds, unless that is 0, and on SIGHUP. What runs on a thread
    cannot be cut off: `hard_stop` seconds after a stop the process ends under it.
    """
    limits = limits or Limits()
    api = Api(models, limits, key is not None)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        reloader = Reloader(api, log_event)
        reloader.on_hangup()
        tasks = [asyncio.create_task(_every(_MEASURED, api.counts.measured))]
        if reload_every:
            tasks.append(asyncio.create_task(_every(reload_every, reloader.look)))
        yield {"metrics": api.counts}
        for task in tasks:
            task.cancel()
        last = Timer(hard_stop or 0, os._exit, (0,))
        last.daemon = True
        if hard_stop is not None:
            last.start()
        reloader.close()
        await api.close()
        last.cancel()

    app = FastAPI(title="mpad", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.router.redirect_slashes = False  # nothing is at /predict/, and that is said
    app.add_exception_handler(Problem, _refuse)
    app.add_exception_handler(HTTPException, _nothing_here)
    for path, handler, asks, gives in (
        ("/predict", api.predict, PredictRequest, PredictResponse),
        ("/explain", api.explain, ExplainRequest, ExplainResponse),
        ("/what-if", api.what_if, WhatIfRequest, PredictResponse),
    ):
        shown: dict[str, Any] = {"response_model": gives, "responses": _REFUSALS, "openapi_extra": body_schema(asks)}
        app.router.routes.append(Route(path, handler, methods=["POST"]))  # answers: half the time of FastAPI's own,
        app.add_api_route(path, handler, methods=["POST"], **shown)  # which stands behind it, and describes it
    for path, probe in (("/healthz", api.healthz), ("/readyz", api.readyz)):
        app.router.routes.append(Route(path, probe, methods=["GET", "HEAD"]))
    app.add_api_route("/healthz", api.healthz, response_model=Health)
    app.add_api_route("/readyz", api.readyz, response_model=Ready, responses=_NOT_READY)
    app.add_api_route("/metrics", api.metrics, response_class=PlainTextResponse, responses={401: _REFUSALS[401]})
    app.add_api_route("/info", api.info, response_model=Info, responses={401: _REFUSALS[401]})
    for path, name in _FILES.items():
        content = (files("mpad.server") / "static" / name).read_bytes()
        app.add_api_route(path, _file(content, _KINDS[name.rpartition(".")[2]]), include_in_schema=False)
    app.add_api_route("/docs", _file(docs_page(app.openapi()).encode(), _KINDS["html"]), include_in_schema=False)
    known = {route.path for route in app.router.routes if isinstance(route, Route)}
    free = {*_FILES, "/healthz", "/readyz", "/docs", "/openapi.json"}  # a browser's first requests have no key
    app.add_middleware(
        Door, most=limits.body, key=key, known=known, free=free, hosts=hosts, log=log, count=api.counts.request
    )
    if origins:  # outside the door: a browser asks leave without a key, and may read why it is refused
        headers: dict[str, Any] = {"allow_headers": _FROM_PAGES, "expose_headers": ["traceresponse"]}
        app.add_middleware(CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"], **headers)
    return app


async def _every(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await work()
        await asyncio.sleep(seconds)


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return _answer({"detail": error.detail}, error.status, {"retry-after": "1"} if error.status == 503 else None)


async def _nothing_here(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = {404: "there is nothing at this path", 405: "this path takes another method"}.get(error.status_code, "no")
    return _answer({"detail": f"{said}: /docs lists what there is"}, error.status_code, dict(error.headers or {}))


def _named(model: Served, own: list[str]) -> dict[str, Any]:
    """A document's label; of many, also each by itself: a name may hold a comma."""
    return {"label": ", ".join(own), **({"labels": own} if model.many else {})}


def _answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    try:
        body = to_json(content)
    except (PydanticSerializationError, UnicodeEncodeError):  # half a surrogate pair, say in a file's name
        body = json.dumps(content, default=str).encode()
    return Response(body, status, headers, "application/json")


def _file(content: bytes, kind: str) -> Callable[[], Any]:
    async def give() -> Response:
        return Response(content, media_type=kind, headers={"cache-control": "no-cache"})

    return give
