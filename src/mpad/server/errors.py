"""Errors of a request; their messages never contain server internals."""

import json

from starlette.responses import Response

_HEADERS = {401: {"www-authenticate": "Bearer"}, 503: {"retry-after": "1"}}


class HTTPProblem(Exception):
    """Failed request, with its HTTP status and a one-line message."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail

    def response(self) -> Response:
        """Return the error response."""
        body = json.dumps({"detail": self.detail})
        return Response(body, self.status, _HEADERS.get(self.status), "application/json")
