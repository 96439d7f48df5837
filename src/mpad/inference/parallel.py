"""Prediction on several cores: chunks of documents in threads.

Chunks spend nearly all their time in compiled code, which releases Python's lock.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

_pool: ThreadPoolExecutor | None = None


def cores() -> int:
    """Return the number of cores of this process, limited by OMP_NUM_THREADS if it is set."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return max(1, min(there, int(wanted))) if wanted.isdecimal() else there


def parallel_map(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Apply `work` to all parts in parallel; return the results in order."""
    global _pool
    if len(parts) < 2 or cores() < 2:
        return [work(part) for part in parts]
    try:
        if _pool is None:
            _pool = ThreadPoolExecutor(cores(), "mpad")
        result = _pool.map(work, parts)
    except RuntimeError:  # the main thread has ended, and Python starts no new threads
        return [work(part) for part in parts]
    return list(result)


def _forget() -> None:
    """Reset the pool in a forked process, which has none of its parent's threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
