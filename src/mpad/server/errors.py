"""Errors of a request; their messages never contain server internals."""


class HTTPProblem(Exception):
    """Failed request, with its HTTP status and a one-line message."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
