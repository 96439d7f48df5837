"""Limits of a request."""

from dataclasses import dataclass

from mpad.errors import InputError


@dataclass(frozen=True)
class Limits:
    """Limits beyond which a request is refused with an error message."""

    body: int = 4 << 20  # bytes
    documents: int = 1_000  # per request
    characters: int = 200_000  # per document
    explained: int = 50_000  # characters per explained document
    waiting: int = 10_000  # queued documents; above that the response is 503
    connections: int = 1_000  # concurrent, per worker; above that the response is 503
    seconds: int = 30  # to send a whole request, and to read the response

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1:
                raise InputError(f"the limit of {name} must be at least 1, not {value}")
