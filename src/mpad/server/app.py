"""HTTP API and web page: predict, explain and what-if over named models."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from html import escape
from importlib.resources import files
from threading import Timer
from typing import Any, get_type_hints

import numpy as np
from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.routing import APIRoute
from pydantic_core import PydanticSerializationError, to_json
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from mpad._version import __version__
from mpad.data.labels import as_lists
from mpad.scale.text_model import Predictions
from mpad.server.batching import Batcher
from mpad.server.errors import HTTPProblem
from mpad.server.metrics import CONTENT_TYPE, Metrics
from mpad.server.middleware import RequestGuard, to_stderr
from mpad.server.models import LoadedModel
from mpad.server.reload import Reloader
from mpad.server.schemas import (
    Error,
    ExplainRequest,
    ExplainResponse,
    Info,
    PredictRequest,
    PredictResponse,
    Status,
    WhatIfRequest,
    read_body,
)
from mpad.server.settings import Settings

_SCRIPTS = "app", "answer", "graph", "dom", "workspace", "overview", "labels", "table", "csv", "docs"
_FILES = {"/": "index.html", "/style.css": "style.css"} | {f"/{name}.js": f"{name}.js" for name in _SCRIPTS}
_CORS_HEADERS = ["content-type", "x-api-key", "authorization", "traceparent"]
_READY = 5.0  # seconds a model may take to predict one document
_MEMORY_INTERVAL = 10.0  # seconds between two measurements of a worker's memory
_MAX_PENDING = 32  # requests per executor
_MEDIA_TYPES = {"html": "text/html; charset=utf-8", "css": "text/css", "js": "text/javascript"}
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Error, "description": description}
    for status, description in {
        400: "not JSON",
        401: "missing or wrong key",
        404: "no such model",
        413: "too large",
        415: "not declared as JSON",
        422: "does not match the schema",
        503: "too many documents are waiting",
    }.items()
}
_NOT_READY: dict[int | str, dict[str, Any]] = {503: {"model": Error, "description": "a model does not respond"}}
_EXAMPLES: dict[str, dict[str, Any]] = {
    "/predict": {"texts": ["a first document", "a second one"]},
    "/explain": {"text": "a document to explain", "method": "gradients"},
    "/what-if": {"text": "a document without its first word", "words": [0]},
}


class SerialExecutor:
    """Executor that runs jobs one at a time on its own thread and skips clients that disconnected while waiting."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._lock, self._pending = asyncio.Lock(), 0

    async def run(self, request: Request, work: Callable[..., Any], *arguments: Any) -> Any:
        """Wait for earlier jobs, then run this one."""
        if self._pending >= _MAX_PENDING:
            raise HTTPProblem(503, f"{self._pending} requests of this kind are waiting already: come back in a moment")
        self._pending += 1
        try:
            async with self._lock:
                if await request.is_disconnected():
                    raise HTTPProblem(499, "the client has left")
                return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        finally:
            self._pending -= 1

    def close(self) -> None:
        """Finish the running job and cancel the rest."""
        self._thread.shutdown(wait=True, cancel_futures=True)


class Api:
    """Endpoints over named models; the first model is the default."""

    def __init__(self, models: Mapping[str, LoadedModel], settings: Settings) -> None:
        self._limits, self._needs_key = settings.limits, settings.key is not None
        self.metrics = Metrics()
        waiting = self._limits.waiting
        self.batchers = {name: Batcher(model, waiting, self.metrics) for name, model in models.items()}
        for model in models.values():
            self.metrics.set_model(model, loaded=True)
            if settings.reference:
                self.metrics.set_reference(model, settings.reference)
        # Two executors, so that a click on the page never waits for a long explanation.
        self._explaining, self._what_if = SerialExecutor("explain"), SerialExecutor("what-if")

    async def predict(self, request: Request, body: PredictRequest) -> Response:
        """Predict the label of one document or many, with the probability of each class."""
        texts = [body.texts] if isinstance(body.texts, str) else body.texts
        self._check_sizes(texts, self._limits.characters)
        batcher = self._find_batcher(body.model, request, len(texts))
        model = batcher.model
        if not texts:
            return _json_response({"model": model.name, "predictions": []})
        return _json_predictions(model, await batcher.predict(texts))

    async def explain(self, request: Request, body: ExplainRequest) -> Response:
        """Return the weights of words, pairs and sentences, and the graph of words with a layout for drawing."""
        model = self._find_explained(request, body)
        return _json_response(await self._explaining.run(request, _explain, model, body))

    async def what_if(self, request: Request, body: WhatIfRequest) -> Response:
        """Predict the label of a document after removing some of its words and edges."""
        model = self._find_explained(request, body)
        edges = [(edge.source, edge.target) for edge in body.edges]
        predictions = await self._what_if.run(request, model.predict_without, body.text, body.words, edges)
        return _json_predictions(model, predictions)

    async def healthz(self) -> Response:
        """Report that the process is up, whatever the state of its models."""
        return _json_response({"status": "ok"})

    async def readyz(self) -> Response:
        """Report whether every model is loaded and responds."""
        batchers = list(self.batchers.values())
        ready = await asyncio.gather(*[batcher.is_responding(_READY) for batcher in batchers])
        late = [batcher.model.name for batcher, responds in zip(batchers, ready, strict=True) if not responds]
        if late:
            raise HTTPProblem(503, f"not ready: {', '.join(late)} did not answer within {_READY:g} seconds")
        return _json_response({"status": "ready"})

    async def metrics_page(self) -> Response:
        """Return the metrics of all workers in Prometheus' text format."""
        return Response(await self.metrics.page(), media_type=CONTENT_TYPE)

    async def info(self) -> Response:
        """Describe the models and the limits of a request."""
        models = [batcher.model.info() for batcher in self.batchers.values()]
        facts = {"version": __version__, "models": models, "limits": vars(self._limits), "needs_key": self._needs_key}
        return _json_response(facts)

    def swap(self, model: LoadedModel) -> Batcher:
        """Serve this model from now on; return the batcher of its predecessor."""
        old = self.batchers[model.name]
        self.batchers[model.name] = Batcher(model, self._limits.waiting, self.metrics)
        self.metrics.set_model(old.model, loaded=False)
        self.metrics.set_model(model, loaded=True)
        return old

    async def close(self) -> None:
        """Finish accepted work and stop the threads."""
        for batcher in self.batchers.values():
            await batcher.close()
        self._explaining.close()
        self._what_if.close()

    def _find_batcher(self, name: str | None, request: Request, documents: int) -> Batcher:
        if name is not None and name not in self.batchers:
            raise HTTPProblem(404, f"there is no model of that name; there are: {', '.join(self.batchers)}")
        batcher = next(iter(self.batchers.values())) if name is None else self.batchers[name]
        request.scope["logged"] = {"model": batcher.model.name, "documents": documents}
        return batcher

    def _find_explained(self, request: Request, body: ExplainRequest | WhatIfRequest) -> LoadedModel:
        self._check_sizes([body.text], min(self._limits.explained, self._limits.characters))
        return self._find_batcher(body.model, request, 1).model

    def _check_sizes(self, texts: list[str], most: int) -> None:
        limit = self._limits.documents
        if len(texts) > limit:
            raise HTTPProblem(413, f"{len(texts):,} documents in one request; at most {limit:,} are taken")
        for place, text in enumerate(texts):
            if len(text) > most:
                raise HTTPProblem(413, f"document {place} has {len(text):,} characters; at most {most:,} are taken")


class BodyRoute(APIRoute):
    """Route that validates the bytes of a body in one step; FastAPI would turn them into Python objects first."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request."""
        schema = get_type_hints(self.endpoint).get("body")
        if schema is None:
            return super().get_route_handler()

        async def handle(request: Request) -> Response:
            response: Response = await self.endpoint(request, await read_body(request, schema))
            return response

        return handle


def make_app(
    models: Mapping[str, LoadedModel],
    settings: Settings | None = None,
    log: Callable[[dict[str, Any]], None] | None = to_stderr,
    log_event: Callable[[dict[str, Any]], None] = to_stderr,
    hard_stop: float | None = None,
) -> FastAPI:
    """Return the ASGI app that serves these models.

    Changed model folders are loaded again on SIGHUP and as `settings.reload_every` says. A thread cannot be
    interrupted, so the process exits `hard_stop` seconds after a stop.
    """
    settings = settings or Settings()
    api = Api(models, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        reloader = Reloader(api, log_event)
        reloader.handle_sighup()
        tasks = [asyncio.create_task(_repeat(_MEMORY_INTERVAL, api.metrics.update_memory))]
        if settings.reload_every:
            tasks.append(asyncio.create_task(_repeat(settings.reload_every, reloader.check_folders)))
        yield {"metrics": api.metrics}
        for task in tasks:
            task.cancel()
        exit_timer = Timer(hard_stop or 0, os._exit, (0,))
        exit_timer.daemon = True
        if hard_stop is not None:
            exit_timer.start()
        reloader.close()
        await api.close()
        exit_timer.cancel()

    app = FastAPI(title="mpad", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.router.redirect_slashes = False  # /predict/ is a 404 with a message, not a redirect
    app.add_exception_handler(HTTPException, report_unknown_route)
    _add_routes(app, api)
    known = {route.path for route in app.routes if isinstance(route, Route)}
    free = {*_FILES, "/healthz", "/readyz", "/docs", "/openapi.json"}  # a browser's first requests carry no key
    app.add_middleware(RequestGuard, settings, known, free, log, api.metrics.count_request)
    if settings.origins:  # outside the guard: a preflight request carries no key, and a page may read an error response
        headers: dict[str, Any] = {"allow_headers": _CORS_HEADERS, "expose_headers": ["traceresponse"]}
        app.add_middleware(CORSMiddleware, allow_origins=settings.origins, allow_methods=["GET", "POST"], **headers)
    return app


def _add_routes(app: FastAPI, api: Api) -> None:
    app.router.route_class = BodyRoute
    app.post("/predict", response_model=PredictResponse, responses=_ERRORS)(api.predict)
    app.post("/explain", response_model=ExplainResponse, responses=_ERRORS)(api.explain)
    app.post("/what-if", response_model=PredictResponse, responses=_ERRORS)(api.what_if)
    app.get("/healthz", response_model=Status)(api.healthz)
    app.get("/readyz", response_model=Status, responses=_NOT_READY)(api.readyz)
    for path, probe in (("/healthz", api.healthz), ("/readyz", api.readyz)):
        app.head(path, include_in_schema=False)(probe)
    with_key: dict[int | str, dict[str, Any]] = {401: _ERRORS[401]}
    app.get("/metrics", response_class=PlainTextResponse, responses=with_key)(api.metrics_page)
    app.get("/info", response_model=Info, responses=with_key)(api.info)
    static = files("mpad.server") / "static"
    for path, name in _FILES.items():
        content = (static / name).read_bytes()
        app.get(path, include_in_schema=False)(serve_file(content, name.rpartition(".")[2]))
    page = (static / "docs.html").read_text("utf-8").replace("{operations}", _describe(app.openapi()))
    app.get("/docs", include_in_schema=False)(serve_file(page.encode(), "html"))


async def _repeat(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await work()
        await asyncio.sleep(seconds)


async def report_unknown_route(request: Request, error: Exception) -> Response:
    """Describe a request to an unknown path or by an unknown method."""
    assert isinstance(error, HTTPException)
    reasons = {404: "there is nothing at this path", 405: "this path takes another method"}
    detail = f"{reasons.get(error.status_code, 'no')}: /docs lists what there is"
    response = HTTPProblem(error.status_code, detail).response()
    response.headers.update(error.headers or {})
    return response


def _explain(model: LoadedModel, body: ExplainRequest) -> dict[str, Any]:
    """Explain a document; return the fields of `ExplainResponse`."""
    explanation = model.explain(body.text, body.label, body.method, body.without)
    from mpad.explain.layout import draw  # imports torch, which only the first explanation may do

    drawing, occurrences = draw(explanation), explanation.places()
    (predicted,) = as_lists([explanation.predicted])
    return {
        "model": model.name,
        "label": str(explanation.label),
        **_label_fields(model, predicted, "predicted"),
        "method": explanation.method,
        "probabilities": {str(label): p for label, p in explanation.probabilities.items()},
        "words": [vars(word) for word in explanation.words],
        "sentences": [vars(sentence) for sentence in explanation.sentences],
        "nodes": [
            {"word": n.word, "weight": n.weight, "x": n.x, "y": n.y, "occurrences": occurrences[n.word]}
            for n in drawing.nodes
        ],
        "edges": [{"source": a, "target": b, "count": e.count, "weight": e.weight} for a, b, e in drawing.edges],
        "keywords": [keyword.text for keyword in explanation.keywords()],
        "phrases": [phrase.text for phrase in explanation.phrases()],
        "summary": [explanation.sentences.index(sentence) for sentence in explanation.summary()],
        "total": explanation.total,
        "baseline": explanation.baseline,
        "note": " ".join(note for note in (explanation.note, drawing.note) if note),
    }


def _json_predictions(model: LoadedModel, predictions: Predictions) -> Response:
    """Return the response of the fields of `PredictResponse`."""
    n = len(predictions.labels)
    rows: list[Any] = [None] * n if predictions.probabilities is None else predictions.probabilities.tolist()
    shares: list[Any] = [None] * n
    if predictions.words is not None:
        words, unknown = predictions.words.T
        shares = (unknown / np.maximum(words, 1)).round(4).tolist()
    each = [
        {
            **_label_fields(model, labels, "label"),
            "probabilities": None if row is None else dict(zip(model.classes, row, strict=True)),
            "unknown": share,
        }
        for labels, row, share in zip(predictions.labels, rows, shares, strict=True)
    ]
    return _json_response({"model": model.name, "predictions": each})


def _label_fields(model: LoadedModel, labels: list[str], name: str) -> dict[str, Any]:
    """Return the labels as one string, and for a multi-label model also as a list, as a name may contain a comma."""
    return {name: ", ".join(labels), **({"labels": labels} if model.many else {})}


def _json_response(content: Any) -> Response:
    try:
        body = to_json(content)
    except (PydanticSerializationError, UnicodeEncodeError):  # lone surrogates, as a file name may contain
        body = json.dumps(content, default=str).encode()
    return Response(body, media_type="application/json")


def serve_file(content: bytes, suffix: str) -> Callable[[], Any]:
    """Return an endpoint that serves a file."""

    async def serve() -> Response:
        return Response(content, media_type=_MEDIA_TYPES[suffix], headers={"cache-control": "no-cache"})

    return serve


def _describe(description: dict[str, Any]) -> str:
    """Render an OpenAPI description in HTML, with examples that run against this server."""
    schemas, parts = description["components"]["schemas"], []
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            parts.append(f"<h2>{method.upper()} {escape(path)}</h2><p>{escape(operation.get('description', ''))}</p>")
            parts.append(_example_form(method, path))
            responses = operation["responses"].items()
            statuses = ", ".join(f"{status}: {escape(one['description'])}" for status, one in responses)
            parts.append(f"<p>{statuses}</p>")
    parts.append("<h2>requests and responses</h2>")
    for name, schema in schemas.items():
        parts.append(f"<h3>{escape(name)}</h3><pre>{escape(json.dumps(schema, indent=1))}</pre>")
    return "\n".join(parts)


def _example_form(method: str, path: str) -> str:
    """Return an example request as a curl command and as an editable form."""
    body = _EXAMPLES.get(path)
    name = f"try-{path.strip('/')}"
    content = "" if body is None else escape(json.dumps(body, indent=1))
    field = f'<label for="{name}">body</label><textarea id="{name}" rows="4" spellcheck="false">{content}</textarea>'
    data = "" if body is None else f" -H 'content-type: application/json' -d '{json.dumps(body)}'"
    return (
        f'<pre class="curl">{escape(f"curl -s localhost:8000{path}{data}")}</pre>'
        f'<form class="try" data-method="{method.upper()}" data-path="{escape(path.lstrip("/"))}">'
        f'{field if body is not None else ""}<button type="submit">Run</button>'
        '<pre hidden aria-live="polite"></pre></form>'
    )
