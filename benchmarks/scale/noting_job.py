"""A job whose workers note when they began and ended each file."""

import json
import os
import time
from pathlib import Path

from mpad.scale.job import Job, Outcome, Task

NOTES = "notes.jsonl"


class NotingJob(Job):
    """Scores as any job does, and adds a line to a file in the folder of answers."""

    def score(self, task: Task) -> Outcome:
        """Answer a file."""
        began = time.time(), time.process_time()
        outcome = super().score(task)
        note = {"pid": os.getpid(), "born": _born(), "began": began, "ended": (time.time(), time.process_time())}
        with (task.out.parent / NOTES).open("a") as file:
            file.write(json.dumps(note) + "\n")
        return outcome


def _born() -> float:
    """When this process was started, in seconds since the epoch."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    since_boot = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - since_boot + ticks / os.sysconf("SC_CLK_TCK")
