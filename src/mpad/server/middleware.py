"""Checks of every request (key, size, host), security headers, trace context and the request log."""

import asyncio
import hmac
import json
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mpad.server.errors import HTTPProblem
from mpad.server.settings import MAX_HEADERS, Settings

_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
]
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::\d{1,5})?")
_TRACEPARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_MAX_TRACEPARENT = 256  # bytes; later versions of the standard may append fields


def to_stderr(line: dict[str, Any]) -> None:
    """Write one line of JSON to standard error."""
    sys.stderr.write(json.dumps(line) + "\n")


@dataclass(frozen=True)
class Trace:
    """W3C trace context of a request; ids in hexadecimal."""

    trace_id: str
    parent_id: str  # the caller's span
    span_id: str  # this request's span
    flags: str

    @property
    def response_header(self) -> tuple[bytes, bytes]:
        """Header that returns the ids of this request to the caller."""
        return b"traceresponse", f"00-{self.trace_id}-{self.span_id}-{self.flags}".encode()

    @property
    def log_fields(self) -> dict[str, str]:
        """Ids for the request log."""
        return {"trace_id": self.trace_id, "span_id": self.span_id, "parent_id": self.parent_id}


def read_trace(headers: Iterable[tuple[bytes, bytes]]) -> Trace | None:
    """Return the trace context of a request; None if its `traceparent` is missing, repeated or malformed."""
    values = [value for name, value in headers if name == b"traceparent"]
    if len(values) != 1 or len(values[0]) > _MAX_TRACEPARENT:
        return None
    match = _TRACEPARENT.fullmatch(values[0].strip())
    if match is None:
        return None
    version, trace, parent, flags, more = match.groups()
    if version == b"ff" or (version == b"00" and more) or not int(trace, 16) or not int(parent, 16):
        return None
    return Trace(trace.decode(), parent.decode(), secrets.token_hex(8), flags.decode())


class RequestGuard:
    """ASGI middleware that checks every request and logs its outcome, never the text of a document.

    `known` are the served paths; `free` are those that need no key. `settings.hosts` protects against DNS rebinding,
    where another site's name resolves to this machine.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        known: Set[str],
        free: Set[str],
        log: Callable[[dict[str, Any]], None] | None,
        count: Callable[[str, int, float], None],
    ) -> None:
        self._app, self._known, self._free, self._log, self._count = app, known, free, log, count
        self._max_body, self._hosts = settings.limits.body, settings.hosts
        self._key = None if settings.key is None else settings.key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status, sent = time.perf_counter(), 500, 0
        trace = read_trace(scope["headers"])
        added = _HEADERS if trace is None else [*_HEADERS, trace.response_header]

        async def send_with_headers(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *added]
            elif message["type"] == "http.response.body":
                sent += len(message.get("body", b""))
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, self._limit_body(receive), send_with_headers)
        except HTTPProblem as problem:
            await problem.response()(scope, receive, send_with_headers)
        except ClientDisconnect:
            status = 499  # nobody reads the response
        except asyncio.CancelledError:
            await HTTPProblem(503, "the server is stopping").response()(scope, receive, send_with_headers)
        finally:
            taken = time.perf_counter() - start
            # arbitrary paths stay out of the log
            path = scope["path"] if scope["path"] in self._known else "(unknown)"
            self._count(path, status, taken)
            if self._log is not None:
                line = {"at": round(time.time(), 3), "method": scope["method"], "path": path, "status": status}
                line |= {"ms": round(1000 * taken, 2), "bytes": sent, **scope.get("logged", {})}
                self._log(line if trace is None else {**line, **trace.log_fields})

    def _check(self, scope: Scope) -> None:
        """Raise HTTPProblem if the headers of a request are refused."""
        headers = dict(scope["headers"])
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADERS:
            raise HTTPProblem(431, f"headers are at most {MAX_HEADERS:,} bytes")
        if sum(name == b"host" for name, _ in scope["headers"]) > 1:
            raise HTTPProblem(400, "more than one Host header")
        if self._hosts is not None and _host(headers.get(b"host", b"")) not in self._hosts:
            raise HTTPProblem(421, "this server is not asked for by that name: --allow-host NAME lets it be")
        if self._key is not None and scope["path"] not in self._free and not _has_key(headers, self._key):
            raise HTTPProblem(401, "this server wants an API key: send it in the header X-API-Key")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit():
            raise HTTPProblem(400, "the header Content-Length is not a number")
        self._check_size(int(length))
        if scope["method"] == "POST":
            kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
            if kind != b"application/json":
                raise HTTPProblem(415, "expected JSON: send it with the header Content-Type: application/json")

    def _check_size(self, size: int) -> None:
        if size > self._max_body:
            detail = f"the request is larger than {self._max_body:,} bytes: send fewer or shorter documents"
            raise HTTPProblem(413, detail)

    def _limit_body(self, receive: Receive) -> Receive:
        """Stop reading a body without a declared length at the limit."""
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            self._check_size(received)
            return message

        return receive_limited


def _has_key(headers: dict[bytes, bytes], expected: bytes) -> bool:
    key = headers.get(b"x-api-key", b"")
    bearer = headers.get(b"authorization", b"")
    if not key and bearer.lower().startswith(b"bearer "):
        key = bearer[7:].strip()
    return hmac.compare_digest(key, expected)


def _host(header: bytes) -> str:
    """Return the name in a Host header, without brackets and port; empty if it is malformed."""
    match = _HOST.fullmatch(header.decode("latin-1").strip().lower())
    return "" if match is None else match[1] or match[2]
