"""HTTP protocol with time limits and a maximum number of connections."""

import asyncio
import errno
from asyncio.events import TimerHandle
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mpad.server.metrics import CONNECTION
from mpad.server.settings import Limits

_MAX_HEADERS = 64 << 10  # bytes
_MAX_PIPELINED = 16  # requests per connection
_CLOSE_HEADERS = b"connection: close\r\ncontent-type: application/json\r\n"


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
    _head = 0  # bytes of parsed headers; -1 once they are complete
    _unparsed = 0  # bytes received since the headers began

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request, or refuse the connection."""
        super().connection_made(transport)
        if len(self.connections) > self.config.limits.connections:
            self._refuse(
                503, "Service Unavailable", "too many connections: come back in a moment", b"retry-after: 1\r\n"
            )
        else:
            self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Parse a part of a request."""
        if self._timer is None and not self._is_responding():
            self._start_timer()
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._head >= 0:  # catches a header without an end, which on_header never sees
            self._unparsed += len(data)
            if self._unparsed > _MAX_HEADERS:
                self._refuse(431, "Request Header Fields Too Large", f"headers are at most {_MAX_HEADERS:,} bytes")
        else:
            self._unparsed = 0

    def on_message_begin(self) -> None:
        """Reset the header size for a new request."""
        self._head = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Accept a header; refuse a request whose headers are too large."""
        self._head += len(name) + len(value)
        if self._head > _MAX_HEADERS:
            self._refuse(431, "Request Header Fields Too Large", f"headers are at most {_MAX_HEADERS:,} bytes")
        elif not self.transport.is_closing():
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the response; abort a connection with too many pipelined requests."""
        self._head = -1
        if len(self.pipeline) >= _MAX_PIPELINED:
            self.transport.abort()
        elif not self.transport.is_closing():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Accept a part of the body, unless the request was refused."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop the timer: the request is complete."""
        self._stop_timer()
        if not self.transport.is_closing():
            super().on_message_complete()

    def pause_writing(self) -> None:
        """Start the timer: the client does not read."""
        super().pause_writing()
        self._start_timer()

    def resume_writing(self) -> None:
        """Stop the timer: the client reads again."""
        super().resume_writing()
        if self._is_responding():
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer: the client disconnected."""
        self._stop_timer()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection, with a 503 if its request is incomplete."""
        if self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete:
            self._refuse(503, "Service Unavailable", "the server is stopping")
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
        if self._is_responding():
            self.transport.abort()  # the client does not read the response
        else:
            within = self.config.limits.seconds
            self._refuse(408, "Request Timeout", f"the request was not there within {within} seconds")

    def _refuse(self, status: int, reason: str, message: str, more: bytes = b"") -> None:
        if self.transport.is_closing():
            return
        if "metrics" in self.app_state:
            self.app_state["metrics"].count_request(CONNECTION, status)
        if self.cycle is None or not self.cycle.response_started:
            body = f'{{"detail":"{message}"}}'.encode()
            length = f"content-length: {len(body)}\r\n\r\n".encode()
            self.transport.write(f"HTTP/1.1 {status} {reason}\r\n".encode() + _CLOSE_HEADERS + more + length + body)
        self.transport.close()


def listen(host: str, port: int) -> list[Any]:
    """Open sockets on every address of a host name; raise OSError if none can be opened or a port is in use."""
    import socket

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
            if not opened or error.errno == errno.EADDRINUSE:
                for other in opened:
                    other.close()
                raise
            continue  # a name may resolve to an address of another machine
        opened.append(one)
    return opened
