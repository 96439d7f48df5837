"""HTTP API and page of a labeling session."""

import asyncio
from collections.abc import Callable
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mpad._version import __version__
from mpad.errors import MPADError
from mpad.labeling.session import Document, LabelingSession
from mpad.server.app import BodyRoute, report_unknown_route, serve_file
from mpad.server.errors import HTTPProblem
from mpad.server.middleware import RequestGuard
from mpad.server.settings import Settings

_FILES = {
    "/": "label.html",
    "/label.js": "label.js",
    "/dom.js": "dom.js",
    "/style.css": "style.css",
    "/label.css": "label.css",
}


class Row(BaseModel):
    """A document by its number."""

    model_config = ConfigDict(extra="forbid")
    row: StrictInt


class Label(Row):
    """The label of a document."""

    label: Annotated[StrictStr, Field(max_length=200)]


class Nothing(BaseModel):
    """A request without fields."""

    model_config = ConfigDict(extra="forbid")


class LabelApi:
    """Endpoints of a labeling session; every answer has the next document and the progress."""

    def __init__(self, session: LabelingSession) -> None:
        self._session = session

    async def next(self, request: Request) -> Response:
        """Return the document to label next."""
        return await self._respond(self._session.next_document)

    async def state(self, request: Request) -> Response:
        """Return the progress without a document."""
        return JSONResponse(await _in_thread(self._session.state))

    async def label(self, request: Request, body: Label) -> Response:
        """Store a label; return the next document."""
        return await self._respond(self._session.next_document, lambda: self._session.label(body.row, body.label))

    async def skip(self, request: Request, body: Row) -> Response:
        """Leave a document out; return the next one."""
        return await self._respond(self._session.next_document, lambda: self._session.skip(body.row))

    async def undo(self, request: Request, body: Nothing) -> Response:
        """Take back the last label; return its document."""

        def undone() -> Document | None:
            row = self._session.undo()
            return self._session.next_document() if row is None else self._session.document(row)

        return await self._respond(undone)

    async def _respond(self, find: Callable[[], Document | None], first: Callable[[], None] | None = None) -> Response:
        def work() -> dict[str, Any]:
            if first is not None:
                first()
            document = find()
            return {"document": None if document is None else as_json(document), **self._session.state()}

        try:
            return JSONResponse(await _in_thread(work))
        except MPADError as error:
            raise HTTPProblem(422, str(error)[:500]) from None


def as_json(document: Document) -> dict[str, Any]:
    """Return a document with its suggestion and the words behind it."""
    words = () if document.explanation is None else document.explanation.words
    return {
        "row": document.row,
        "text": document.text,
        "suggestion": document.suggestion,
        "probability": document.probability,
        "words": [[word.start, word.end, word.weight] for word in words],
    }


async def _in_thread(work: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, work)


def make_label_app(session: LabelingSession, settings: Settings | None = None) -> FastAPI:
    """Return the ASGI app of a labeling session."""
    api = LabelApi(session)
    app = FastAPI(title="mpad label", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    app.router.redirect_slashes = False
    app.router.route_class = BodyRoute
    app.add_exception_handler(HTTPException, report_unknown_route)
    app.get("/next")(api.next)
    app.get("/state")(api.state)
    app.post("/label")(api.label)
    app.post("/skip")(api.skip)
    app.post("/undo")(api.undo)
    static = files("mpad.server") / "static"
    for path, name in _FILES.items():
        app.get(path)(serve_file((static / name).read_bytes(), name.rpartition(".")[2]))
    known = {"/next", "/state", "/label", "/skip", "/undo", *_FILES}
    app.add_middleware(RequestGuard, settings or Settings(), known, set(_FILES), None, lambda *_: None)
    return app
