"""HTTP connections with an end: a request arrives within a stated time, and there are only so many at once."""

import asyncio
import errno
from asyncio.events import TimerHandle
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mpad.server.limits import Limits
from mpad.server.metrics import CONNECTION

_LARGEST_HEAD = 64 << 10  # bytes
_MOST_WAITING = 16  # requests of one connection
_CLOSING = b"connection: close\r\ncontent-type: application/json\r\n"


class LimitedConfig(Config):
    """uvicorn's configuration, with the limits of its connections; it can be sent to other processes."""

    def __init__(self, app: Any, limits: Limits, **options: Any) -> None:
        super().__init__(app, http=LimitedProtocol, **options)
        self.limits = limits


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which has no limits of its own on how slowly a request may arrive or an answer be read.

    A request must be there whole within so many seconds of its first byte, or of the connection; an answer must be
    taken as fast. Connections beyond the limit are told to come back. A stop closes those whose request is not there.
    """

    config: LimitedConfig
    _timer: TimerHandle | None = None
    _head = 0  # bytes of headers so far; -1 once they are there
    _unfinished = 0  # bytes received since headers began

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, or refuse to."""
        super().connection_made(transport)
        if len(self.connections) > self.config.limits.connections:
            self._refuse(
                503, "Service Unavailable", "too many connections: come back in a moment", b"retry-after: 1\r\n"
            )
        else:
            self._start()

    def data_received(self, data: bytes) -> None:
        """Take some of a request."""
        if self._timer is None and not self._answering():
            self._start()
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._head >= 0:  # a header that does not end
            self._unfinished += len(data)
            if self._unfinished > _LARGEST_HEAD:
                self._refuse(431, "Request Header Fields Too Large", f"headers are at most {_LARGEST_HEAD:,} bytes")
        else:
            self._unfinished = 0

    def on_message_begin(self) -> None:
        """A request begins."""
        self._head = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, of which there may be only so much."""
        self._head += len(name) + len(value)
        if self._head > _LARGEST_HEAD:
            self._refuse(431, "Request Header Fields Too Large", f"headers are at most {_LARGEST_HEAD:,} bytes")
        elif not self.transport.is_closing():
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer; requests that are sent before earlier ones are answered wait, but only a few."""
        self._head = -1
        if len(self.pipeline) >= _MOST_WAITING:
            self.transport.abort()
        elif not self.transport.is_closing():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take some of the body, unless the request was refused."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is there whole."""
        self._stop()
        if not self.transport.is_closing():
            super().on_message_complete()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._start()

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        if self._answering():
            self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        self._stop()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server stops."""
        if self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete:
            self._refuse(503, "Service Unavailable", "the server is stopping")
        else:
            super().shutdown()

    def _answering(self) -> bool:
        """Whether a whole request is there that has no whole answer yet."""
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def _start(self) -> None:
        self._stop()
        self._timer = self.loop.call_later(self.config.limits.seconds, self._late)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if self._answering():
            self.transport.abort()  # whoever asked does not read the answer
        else:
            within = self.config.limits.seconds
            self._refuse(408, "Request Timeout", f"the request was not there within {within} seconds")

    def _refuse(self, status: int, reason: str, said: str, more: bytes = b"") -> None:
        if self.transport.is_closing():
            return
        if "metrics" in self.app_state:
            self.app_state["metrics"].request(CONNECTION, status)
        if self.cycle is None or not self.cycle.response_started:
            body = f'{{"detail":"{said}"}}'.encode()
            length = f"content-length: {len(body)}\r\n\r\n".encode()
            self.transport.write(f"HTTP/1.1 {status} {reason}\r\n".encode() + _CLOSING + more + length + body)
        self.transport.close()


def listen(host: str, port: int) -> list[Any]:
    """Sockets on every address that the host's name stands for; an OSError says why not."""
    import socket

    result = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    opened: list[socket.socket] = []
    for family, kind, number, _, address in dict.fromkeys(result):
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
            continue  # a name may have an address that this machine has not
        opened.append(one)
    return opened
