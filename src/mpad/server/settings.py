"""Settings of a server, and limits of a request."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

from mpad.errors import InputError

MAX_HEADERS = 64 << 10  # bytes


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


@dataclass(frozen=True)
class Settings:
    """Settings of a server, sent to every worker."""

    models: Sequence[str] = ()  # NAME=FOLDER, or FOLDER
    tokenizer: str | None = None
    examples: Sequence[tuple[str, str]] = ()  # pairs of label and text
    reference: Sequence[str] = ()  # documents that traffic is compared with, in the metrics
    limits: Limits = Limits()
    key: str | None = None
    origins: Sequence[str] = ()
    hosts: Set[str] | None = None  # accepted Host headers; None accepts any
    quiet: bool = False
    stop_within: int = 30  # seconds
    workers: int = 1
    reload_every: float = 0  # seconds between checks of the folders for changes; 0 checks on SIGHUP only
