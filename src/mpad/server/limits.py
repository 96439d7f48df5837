"""How much a request may ask for."""

from dataclasses import dataclass

from mpad.errors import InputError


@dataclass(frozen=True)
class Limits:
    """Beyond these a request is refused, with a sentence that says so."""

    body: int = 4 << 20  # bytes
    documents: int = 1_000  # in one request
    characters: int = 200_000  # of one document
    explained: int = 50_000  # characters of a document that is explained
    waiting: int = 10_000  # documents that may wait for an answer; more are told to come back
    connections: int = 1_000  # at once; more are told to come back
    seconds: int = 30  # in which a request must be there whole, and its answer be read

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1:
                raise InputError(f"the limit of {name} must be at least 1, not {value}")
