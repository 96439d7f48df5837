"""Settings for reading a corpus that does not fit into memory."""

from dataclasses import dataclass, field
from pathlib import Path

from mpad.errors import InputError
from mpad.files.cache import cache_folder
from mpad.inference.fused import cores


def _cache() -> Path:
    return cache_folder() / "streams"


@dataclass(frozen=True)
class StreamOptions:
    """Cache folder, number of processes, and reading order of a streamed corpus.

    Parameters
    ----------
    cache : path, optional
        Folder for packed graphs, about twice as large as the text; it can be removed at any time. Of several machines,
        one that all see.
    workers : int from 1, optional
        Processes that turn text into packed graphs; by default one per core.
    lanes : int, optional
        Streams of documents that each batch is made of; by default one for each training process.
    epoch_documents : int from 1, optional
        Maximal number of documents per epoch; by default all.
    most_held : int, default=20000
        Maximal number of held-out documents.
    window : int, default=32768
        Documents in memory at a time, of each lane.

    """

    cache: Path = field(default_factory=_cache)
    workers: int = field(default_factory=cores)
    lanes: int | None = None
    epoch_documents: int | None = None
    most_held: int = 20_000
    window: int = 32_768

    def __post_init__(self) -> None:
        object.__setattr__(self, "cache", Path(self.cache))

    def lanes_of(self, processes: int) -> int:
        """Return the number of lanes for a number of processes."""
        lanes = processes if self.lanes is None else self.lanes
        if lanes < 1 or lanes % processes:
            raise InputError(f"lanes must be a multiple of the {processes} processes that train, not {lanes}")
        return lanes
