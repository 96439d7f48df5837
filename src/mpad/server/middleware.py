"""What every request passes: the key, the size of its body, headers for browsers, and a line in the log."""

import asyncio
import hmac
import json
import re
import sys
import time
from collections.abc import Callable, Set
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mpad.server.errors import Problem
from mpad.server.tracing import read_trace

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


def to_stderr(line: dict[str, Any]) -> None:
    """A line of JSON on standard error."""
    sys.stderr.write(json.dumps(line) + "\n")


class Door:
    """Checks requests before the app sees them, and logs what came of them; never a document's text.

    `known` are the paths where there is something, `free` those of them that need no key. `hosts` are the names by
    which the server may be asked for: a page of another site can have its own name stand for this machine's address.
    """

    def __init__(
        self,
        app: ASGIApp,
        most: int,
        key: str | None,
        known: Set[str],
        free: Set[str],
        hosts: Set[str] | None = None,
        log: Callable[[dict[str, Any]], None] | None = to_stderr,
        count: Callable[[str, int, float], None] | None = None,
    ) -> None:
        self._app, self._most, self._log, self._count, self._hosts = app, most, log, count, hosts
        self._known, self._free = known, free
        self._key = None if key is None else key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status, sent = time.perf_counter(), 500, 0
        trace = read_trace(scope["headers"])
        added = _HEADERS if trace is None else [*_HEADERS, trace.response]

        async def watched(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *added]
            elif message["type"] == "http.response.body":
                sent += len(message.get("body", b""))
            await send(message)

        try:
            headers = dict(scope["headers"])
            problem = self._refused(scope, headers)
            if problem is None:
                await self._app(scope, self._counted(receive), watched)
            else:
                await refuse(problem, watched)
        except ClientDisconnect:
            status = 499  # nobody is there to be told
        except asyncio.CancelledError:
            await refuse(Problem(503, "the server is stopping"), watched)
        finally:
            taken = time.perf_counter() - start
            # a log is no place for what strangers write into a path
            path = scope["path"] if scope["path"] in self._known else "(unknown)"
            if self._count is not None:
                self._count(path, status, taken)
            if self._log is not None:
                line = {"at": round(time.time(), 3), "method": scope["method"], "path": path, "status": status}
                line |= {"ms": round(1000 * taken, 2), "bytes": sent, **scope.get("logged", {})}
                self._log(line if trace is None else {**line, **trace.logged})

    def _refused(self, scope: Scope, headers: dict[bytes, bytes]) -> Problem | None:
        if sum(name == b"host" for name, _ in scope["headers"]) > 1:
            return Problem(400, "more than one Host header")
        if self._hosts is not None and _host(headers.get(b"host", b"")) not in self._hosts:
            return Problem(421, "this server is not asked for by that name: --allow-host NAME lets it be")
        if self._key is not None and scope["path"] not in self._free and not self._knows(headers):
            return Problem(401, "this server wants an API key: send it in the header X-API-Key")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit():
            return Problem(400, "the header Content-Length is not a number")
        if int(length) > self._most:
            return too_large(self._most)
        if scope["method"] == "POST":
            kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
            if kind != b"application/json":
                return Problem(415, "expected JSON: send it with the header Content-Type: application/json")
        return None

    def _knows(self, headers: dict[bytes, bytes]) -> bool:
        given = headers.get(b"x-api-key", b"")
        bearer = headers.get(b"authorization", b"")
        if not given and bearer.lower().startswith(b"bearer "):
            given = bearer[7:].strip()
        assert self._key is not None
        return hmac.compare_digest(given, self._key)

    def _counted(self, receive: Receive) -> Receive:
        """A body without a declared length is cut off too."""
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._most:
                raise too_large(self._most)
            return message

        return counted


_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::\d{1,5})?")


def _host(header: bytes) -> str:
    """Return the name in a Host header, without brackets and port; nothing if it is not one."""
    match = _HOST.fullmatch(header.decode("latin-1").strip().lower())
    return "" if match is None else match[1] or match[2]


def too_large(most: int) -> Problem:
    """What is said of a body beyond the limit."""
    return Problem(413, f"the request is larger than {most:,} bytes: send fewer or shorter documents")


async def refuse(problem: Problem, send: Send) -> None:
    """Answer with a problem."""
    body = json.dumps({"detail": problem.detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if problem.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
