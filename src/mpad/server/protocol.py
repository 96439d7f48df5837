"""HTTP protocol with time limits and a maximum number of connections."""

import asyncio
import errno
import socket
from asyncio.events import TimerHandle
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from mpad.server.errors import HTTPProblem
from mpad.server.metrics import CONNECTION
from mpad.server.settings import MAX_HEADERS, Limits

_MAX_PIPELINED = 16  # requests per connection


class LimitedConfig(Config):
    """Picklable uvicorn configuration with connection limits."""

    def __init__(self, app: Any, limits: Limits, **options: Any) -> None:
        super().__init__(app, http=LimitedProtocol, **options)
        self.limits = limits


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn protocol with the limits that uvicorn lacks, against slow clients and too many connections.

    A request must be complete within the limit after its first byte, or after connecting; the client must read the
    response within the same time. Connections above the limit get a 503. Shutdown closes incomplete requests.
    """

    config: LimitedConfig
    _timer: TimerHandle | None = None
    _unparsed = 0  # bytes of a head that is incomplete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request, or refuse the connection."""
        super().connection_made(transport)
        if len(self.connections) > self.config.limits.connections:
            self._refuse(HTTPProblem(503, "too many connections: come back in a moment"))
        else:
            self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Parse a part of a request; refuse a head without an end and too many pipelined requests."""
        if self._timer is None and not self._is_responding():
            self._start_timer()
        super().data_received(data)
        in_head = self.cycle is None or self.cycle.scope is not self.scope
        self._unparsed = self._unparsed + len(data) if in_head else 0
        if self._unparsed > MAX_HEADERS:
            self._refuse(HTTPProblem(431, f"headers are at most {MAX_HEADERS:,} bytes"))
        elif len(self.pipeline) > _MAX_PIPELINED:
            self.transport.abort()

    def on_message_complete(self) -> None:
        """Stop the timer: the request is complete."""
        self._stop_timer()
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Start the timer: the client does not read."""
        super().pause_writing()
        self._start_timer()

    def resume_writing(self) -> None:
        """Stop the timer: the client reads again."""
        super().resume_writing()
        self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer: the client disconnected."""
        self._stop_timer()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection, with a 503 if its request is incomplete."""
        if self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete:
            self._refuse(HTTPProblem(503, "the server is stopping"))
        else:
            super().shutdown()

    def _is_responding(self) -> bool:
        """Return whether the request is complete and its response is not."""
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def _start_timer(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(self.config.limits.seconds, self._time_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self._timer = None
        if self.flow.write_paused:
            self.transport.abort()  # the client does not read the response
        else:
            self._refuse(HTTPProblem(408, f"the request was not there within {self.config.limits.seconds} seconds"))

    def _refuse(self, problem: HTTPProblem) -> None:
        """Answer a request that the application has not seen, and close the connection."""
        if self.transport.is_closing():
            return
        if "metrics" in self.app_state:
            self.app_state["metrics"].count_request(CONNECTION, problem.status)
        if self.cycle is None or not self.cycle.response_started:
            response = problem.response()
            headers = [*response.raw_headers, (b"connection", b"close")]
            lines = [name + b": " + value + b"\r\n" for name, value in headers]
            self.transport.write(b"".join([STATUS_LINE[problem.status], *lines, b"\r\n", response.body]))
        self.transport.close()


def listen(host: str, port: int) -> list[socket.socket]:
    """Open sockets on every address of a host name; raise OSError if none can be opened or a port is in use."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    opened: list[socket.socket] = []
    for family, kind, number, _, address in dict.fromkeys(addresses):
        one = socket.socket(family, kind, number)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        chosen = opened[0].getsockname()[1] if opened and not port else port
        try:
            one.bind((address[0], chosen, *address[2:]))
        except OSError as error:
            one.close()
            if opened and error.errno != errno.EADDRINUSE:
                continue  # a name may resolve to an address of another machine
            for other in opened:
                other.close()
            raise
        opened.append(one)
    return opened
