"""The HTTP API: models by name, one or many documents, why, and what if."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.routing import Route

from mpad.server.batching import Batcher
from mpad.server.docs import docs_page
from mpad.server.errors import Problem
from mpad.server.limits import Limits
from mpad.server.middleware import Door, to_stderr
from mpad.server.models import Served
from mpad.server.schemas import (
    Error,
    ExplainRequest,
    ExplainResponse,
    Health,
    Info,
    PredictRequest,
    PredictResponse,
    WhatIfRequest,
)
from mpad.server.serialize import serialize
from mpad.version import __version__

_NAMED = ("missing", "extra_forbidden")  # problems with a field that is not where it should be, or should not be
_Body = TypeVar("_Body", bound=BaseModel)
_FILES = {"/": "index.html"} | {f"/{name}": name for name in ("style.css", "app.js", "draw.js", "csv.js")}
_MOST_WAITING = 32  # explanations
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


class _Turns:
    """Long work, one after another on a thread of its own; those who have left by their turn are passed over."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._turn, self._waiting = asyncio.Lock(), 0

    async def run(self, request: Request, work: Callable[..., Any], *arguments: Any) -> Any:
        """Wait for one's turn, then for the work."""
        if self._waiting >= _MOST_WAITING:
            raise Problem(503, f"{self._waiting} requests of this kind are waiting already: come back in a moment")
        self._waiting += 1
        try:
            async with self._turn:
                if await request.is_disconnected():
                    raise Problem(499, "the client has left")
                return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Finish what was begun, nothing else."""
        self._thread.shutdown(wait=True, cancel_futures=True)


def _explained(model: Served, asked: ExplainRequest) -> dict[str, Any]:
    return serialize(model.name, model.explain(asked.text, asked.label, asked.method))


class Api:
    """The endpoints over some models; the first is the one that is meant when none is named."""

    def __init__(self, models: Mapping[str, Served], limits: Limits, needs_key: bool) -> None:
        self._models, self._limits, self._needs_key = models, limits, needs_key
        self.batchers = {name: Batcher(model, limits.waiting) for name, model in models.items()}
        self._slow, self._quick = _Turns("explain"), _Turns("what-if")  # a click never waits for a long explanation

    async def predict(self, request: Request) -> Response:
        """Label one document or many, with the probability of each class."""
        asked = await _read(request, PredictRequest)
        texts = [asked.texts] if isinstance(asked.texts, str) else asked.texts
        self._check(texts, self._limits.characters)
        model = self._find(asked.model, request, len(texts))
        if not texts:
            return _answer({"model": model.name, "predictions": []})
        result = await self.batchers[model.name].predict(texts)
        rows: list[Any] = [None] * len(texts) if result.probabilities is None else result.probabilities.tolist()
        predictions = [
            {"label": label, "probabilities": None if row is None else dict(zip(model.classes, row, strict=True))}
            for label, row in zip(result.labels, rows, strict=True)
        ]
        return _answer({"model": model.name, "predictions": predictions})

    async def explain(self, request: Request) -> Response:
        """Say why: weights of words, pairs and sentences, and the graph of words, laid out to be drawn."""
        asked = await _read(request, ExplainRequest)
        self._check([asked.text], min(self._limits.explained, self._limits.characters))
        model = self._find(asked.model, request, 1)
        return _answer(await self._slow.run(request, _explained, model, asked))

    async def what_if(self, request: Request) -> Response:
        """Label a document without some of its words and edges."""
        asked = await _read(request, WhatIfRequest)
        self._check([asked.text], min(self._limits.explained, self._limits.characters))
        model = self._find(asked.model, request, 1)
        edges = [(edge.source, edge.target) for edge in asked.edges]
        row = await self._quick.run(request, model.without, asked.text, asked.words, edges)
        label = model.classes[int(row.argmax())]
        probabilities = dict(zip(model.classes, row.tolist(), strict=True))
        return _answer({"model": model.name, "predictions": [{"label": label, "probabilities": probabilities}]})

    async def healthz(self, request: Request) -> Response:
        """Whether the server answers."""
        return _answer({"status": "ok"})

    async def info(self) -> Response:
        """What is served, and how much a request may ask for."""
        listed = [model.info() for model in self._models.values()]
        facts = {"version": __version__, "models": listed, "limits": vars(self._limits), "needs_key": self._needs_key}
        return _answer(facts)

    async def close(self) -> None:
        """Finish what was begun."""
        for batcher in self.batchers.values():
            await batcher.close()
        self._slow.close()
        self._quick.close()

    def _find(self, name: str | None, request: Request, documents: int) -> Served:
        if name is not None and name not in self._models:
            raise Problem(404, f"there is no model of that name; there are: {', '.join(self._models)}")
        model = next(iter(self._models.values())) if name is None else self._models[name]
        request.scope["logged"] = {"model": model.name, "documents": documents}
        return model

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
    origins: list[str] | None = None,
    hosts: Set[str] | None = None,
    log: Callable[[dict[str, Any]], None] | None = to_stderr,
) -> FastAPI:
    """The app that serves these models, asked for by one of these names for its host, or by any."""
    limits = limits or Limits()
    api = Api(models, limits, key is not None)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await api.close()

    app = FastAPI(title="mpad", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.router.redirect_slashes = False  # nothing is at /predict/, and that is said
    app.add_exception_handler(Problem, _refuse)
    app.add_exception_handler(HTTPException, _nothing_here)
    for path, handler, asks, gives in (
        ("/predict", api.predict, PredictRequest, PredictResponse),
        ("/explain", api.explain, ExplainRequest, ExplainResponse),
        ("/what-if", api.what_if, WhatIfRequest, PredictResponse),
    ):
        shown: dict[str, Any] = {"response_model": gives, "responses": _REFUSALS, "openapi_extra": _asks(asks)}
        app.router.routes.append(Route(path, handler, methods=["POST"]))  # answers: half the time of FastAPI's own,
        app.add_api_route(path, handler, methods=["POST"], **shown)  # which stands behind it, and describes it
    app.router.routes.append(Route("/healthz", api.healthz, methods=["GET", "HEAD"]))
    app.add_api_route("/healthz", api.healthz, response_model=Health)
    app.add_api_route("/info", api.info, response_model=Info, responses={401: _REFUSALS[401]})
    for path, name in _FILES.items():
        content = (files("mpad.server") / "static" / name).read_bytes()
        app.add_api_route(path, _file(content, _KINDS[name.rpartition(".")[2]]), include_in_schema=False)
    app.add_api_route("/docs", _file(docs_page(app.openapi()).encode(), _KINDS["html"]), include_in_schema=False)
    known = {route.path for route in app.router.routes if isinstance(route, Route)}
    free = {*_FILES, "/healthz", "/docs", "/openapi.json"}  # a browser's first requests have no key
    app.add_middleware(Door, most=limits.body, key=key, known=known, free=free, hosts=hosts, log=log)
    if origins:  # outside the door: a browser asks leave without a key, and may read why it is refused
        allowed = ["content-type", "x-api-key", "authorization"]
        app.add_middleware(CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=allowed)
    return app


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return _answer({"detail": error.detail}, error.status, {"retry-after": "1"} if error.status == 503 else None)


async def _nothing_here(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = {404: "there is nothing at this path", 405: "this path takes another method"}.get(error.status_code, "no")
    return _answer({"detail": f"{said}: /docs lists what there is"}, error.status_code, dict(error.headers or {}))


async def _read(request: Request, kind: type[_Body]) -> _Body:
    """The request's body, checked; what is wrong with it becomes one sentence."""
    try:
        return kind.model_validate_json(await request.body())
    except ValidationError as error:
        result = error.errors(include_url=False, include_input=False)
        first = next((one for one in result if one["type"] == "value_error"), result[0])
        if first["type"] == "json_invalid":
            raise Problem(400, f"the body is not valid JSON in UTF-8: {first['msg'].partition(': ')[2]}") from None
        named = {*kind.model_fields, "source", "target"} | ({first["loc"][-1]} if first["type"] in _NAMED else set())
        where = ".".join(str(part)[:100] for part in first["loc"] if part in named or isinstance(part, int))
        said = first["msg"].removeprefix("Value error, ")
        raise Problem(422, f"{where or 'the body'}: {said[:1].lower()}{said[1:]}") from None


def _asks(kind: type[BaseModel]) -> dict[str, Any]:
    """The schema of a body that the handler reads itself."""
    schema = kind.model_json_schema()
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": _inlined(schema)}}}}


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without references of its own."""
    known = schema.pop("$defs", {})

    def put(value: Any) -> Any:
        if isinstance(value, dict):
            name = value.get("$ref", "").rpartition("/")[2]
            return put(known[name]) if name else {key: put(inner) for key, inner in value.items()}
        return [put(inner) for inner in value] if isinstance(value, list) else value

    result: dict[str, Any] = put(schema)
    return result


def _answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(to_json(content), status, headers, "application/json")


def _file(content: bytes, kind: str) -> Callable[[], Any]:
    async def give() -> Response:
        return Response(content, media_type=kind, headers={"cache-control": "no-cache"})

    return give
