"""`python -m benchmarks.scale.empty_job ENGINE MODEL DATA OUT`: one worker over files of one row; when what happened.

The code that `mpad predict` runs, with marks: of the driver (when, its CPU seconds, those of every process below it),
and of the worker at each file. Files hold nothing, so what is left is what the engine costs. Written to OUT/marks.json.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

_STARTED = time.time(), time.process_time()


def main() -> None:
    """Run the job, and print its marks."""
    from benchmarks.processes import sample
    from mpad.scale.columns import PredictOptions
    from mpad.scale.job import make_job, make_tasks

    name, model, data, out = sys.argv[1:]
    marks: list[Any] = [("python", *_STARTED, {})]

    def mark(what: str) -> None:
        tree = {os.getpid(): 0.0}
        sample(tree)
        marks.append((what, time.time(), time.process_time(), tree))

    plain = make_job(Path(model), None, PredictOptions(), None)
    tasks = make_tasks(data, Path(out))
    from benchmarks.scale.noting_job import NOTES, NotingJob

    job = NotingJob(**plain.__dict__)
    mark("model")
    if name == "ray":
        outcomes = _ray(job, tasks, mark)
    else:
        from mpad.scale import pool

        outcomes = pool.score_files(job, tasks, 1)
    ends = []
    for outcome in outcomes:
        if outcome.error:
            raise RuntimeError(outcome.error)
        ends.append(time.time())
        if len(ends) in (1, len(tasks)):
            mark("first" if len(ends) == 1 else "last")
    mark("ended")
    notes = [json.loads(line) for line in (Path(out) / NOTES).read_text().splitlines()]
    (Path(out) / "marks.json").write_text(json.dumps({"pid": os.getpid(), "marks": marks, "notes": notes}))


def _ray(job: Any, tasks: Any, mark: Any) -> Any:
    import ray
    import ray.data

    from mpad.scale import ray as engine

    mark("import")

    def marked(what: str, function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            result = function(*arguments, **options)
            mark(what)
            return result

        return call

    with patch.object(ray, "init", marked("init", ray.init)):
        with patch.object(ray.data, "from_items", marked("items", ray.data.from_items)):
            yield from engine.score_files(job, tasks, 1, None)


if __name__ == "__main__":
    main()
