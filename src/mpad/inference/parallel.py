"""Several cores for one answer: chunks of documents side by side.

Chunks spend nearly all their time in compiled passes, which Python's lock does not hold up.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Found = TypeVar("Found")

_pool: ThreadPoolExecutor | None = None


def cores() -> int:
    """Cores that this process may use; OMP_NUM_THREADS, where it is set, says how many it should."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return max(1, min(there, int(wanted))) if wanted.isdecimal() else there


def side_by_side(work: Callable[[Part], Found], parts: Sequence[Part]) -> list[Found]:
    """What `work` gives for each part, in their order."""
    global _pool
    if len(parts) < 2 or cores() < 2:
        return [work(part) for part in parts]
    try:
        if _pool is None:
            _pool = ThreadPoolExecutor(cores(), "mpad")
        result = _pool.map(work, parts)
    except RuntimeError:  # the main thread has ended, and Python starts no others any more
        return [work(part) for part in parts]
    return list(result)


def _forget() -> None:
    """A forked process has none of its parent's threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
