"""CPU seconds of a tree of processes."""

import os
from pathlib import Path


def sample(seconds: dict[int, float]) -> None:
    """Add to what is known of a tree of processes: those that are new in it, and what each has used so far."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(file.parts[2])
        parents[pid], used[pid] = int(fields[1]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    while fresh := {pid for pid, parent in parents.items() if parent in seconds and pid not in seconds}:
        seconds.update(dict.fromkeys(fresh, 0.0))
    seconds.update({pid: used[pid] for pid in seconds.keys() & used.keys()})
