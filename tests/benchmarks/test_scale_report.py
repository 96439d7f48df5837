"""What is measured of the parts becomes the simulation's inputs, and the page says whether its predictions held."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.scale import document, scenarios
from benchmarks.scale.inputs import inputs_of
from benchmarks.scale.simulation import Cluster, Step, simulate
from benchmarks.scale.watch import watch

ROOT = Path(__file__).parents[2]
STAGES = {"read": 1e-5, "tokenise": 2e-5, "graphs": 3e-5, "network": 30e-5, "write": 1e-5, "rest": 3e-5}  # 4e-4
SIZES = [1000, 3000, 2000, 4000, 2500, 500]
DRIVER, WORKER, HAND_OUT, END = Step(0.4, 0.1), Step(0.5, 0.25), Step(0.001, 0.004), Step(0.0, 0.2)
WARM_UP, LEAVE = 0.3, 0.1
PACKING = {"count_cpu": 1e-5, "pack_cpu": 1e-5, "shard_bytes": 400.0}


def stage():
    whole = [4e-4 * slower for slower in (0.95, 1.0, 1.05)]
    sizes = {"read_bytes": 70.0, "text_bytes": 140.0, "written_bytes": 80.0}
    return {
        "stages": STAGES,
        "whole_cpu": whole,
        "whole_seconds": whole,
        "one_file_cpu": 0.01,
        "warm_up_cpu": WARM_UP,
        **sizes,
    } | {"packing": PACKING}


def empty_job(files=6, slower=1.0):
    """The marks of a job of which every step takes what stands above; CPU seconds take so much longer by the clock."""
    now, cpu = 1000.0 + slower * DRIVER.cpu + DRIVER.wait, DRIVER.cpu
    marks = [["python", 1000.0, 0.0, {}], ["model", now, cpu, {"1": cpu}]]
    began, notes, spent = now + slower * WORKER.cpu + WORKER.wait - 0.002, [], WORKER.cpu - 0.002
    born = now
    for number in range(files):
        first = 0.002 if number == 0 else 0.0  # the model is read with the first file
        ended = began + 0.01 + first
        spent += 0.01 + first
        notes.append({"pid": 2, "born": born, "began": [began, spent - 0.01 - first], "ended": [ended, spent]})
        if number in (0, files - 1):
            at = cpu + HAND_OUT.cpu * number
            marks.append(["first" if number == 0 else "last", ended, at, {"1": at, "2": spent}])
        began = ended + HAND_OUT.cpu + HAND_OUT.wait
    ended += slower * LEAVE
    marks.append(["ended", ended + 0.1, marks[-1][2], {}])
    return {
        "cpu": sum(marks[-2][3].values()) + LEAVE,
        "pid": 1,
        "began": 1000.0,
        "seconds": ended + 0.2 - 1000.0,
        "taken": [[0.0, 0.0]],
        "marks": marks,
        "notes": notes,
    }


def point(workers, slower=1.0):
    """A job that takes what the simulation of the true costs says, or longer."""
    worker = replace(WORKER, cpu=WORKER.cpu + WARM_UP)
    cluster = Cluster(workers, 2, workers, driver=(DRIVER,), worker=worker, hand_out=HAND_OUT, leave=LEAVE, end=END)
    tasks = [scenarios.Task(4e-4 * size + 0.01) for size in SIZES]
    seconds = slower * simulate(cluster, tasks).seconds
    return {"engine": "pool", "kind": "short", "workers": workers, "seconds": seconds, "taken": [[0.0, 0.0]]}


def record(slower=1.0):
    one = {
        "load": 0.0,
        "stages": {"short": stage(), "long": stage()},
        "contention": {"alone": 4e-4, "beside": 4e-4, "crowded": 4e-4},
        "empty": {"pool": empty_job()},
        "points": [point(1), point(2), point(4, slower)],
    }
    machine = {"commit": "x", "versions": {}, "cpu": "x", "cores": 2, "gigabytes": 1}
    return {
        "machine": machine,
        "config": {"seed": 0, "documents_of_files": {"short": SIZES, "long": SIZES}},
        "rounds": [one] * 3,
    }


def test_inputs_are_what_the_parts_took():
    inputs = inputs_of(record())
    pool = inputs.engines["pool"]
    assert inputs.kinds["short"].cpu == pytest.approx(4e-4)
    assert sum(step.cpu for step in pool.driver) == pytest.approx(DRIVER.cpu)
    assert sum(step.wait for step in (*pool.driver, pool.worker)) == pytest.approx(DRIVER.wait + WORKER.wait)
    assert (pool.worker.cpu, pool.leave) == (pytest.approx(WORKER.cpu), pytest.approx(LEAVE))
    for given, wanted in ((pool.hand_out, HAND_OUT), (pool.end, END)):
        assert (given.cpu, given.wait) == (pytest.approx(wanted.cpu), pytest.approx(wanted.wait))
    assert sum(inputs.cpu_slowdowns) / len(inputs.cpu_slowdowns) == pytest.approx(1.0)


def test_time_that_others_took_does_not_count_as_waiting():
    """The same job on a machine on which others leave half a core: computing takes twice as long, waiting as long."""
    quiet, busy = record(), record()
    stretched = empty_job(slower=2.0)
    for one in busy["rounds"]:
        one["empty"] = {"pool": {**stretched, "taken": [[0.0, 1.5]]}}
    for one, other in zip(inputs_of(quiet).engines["pool"].driver, inputs_of(busy).engines["pool"].driver, strict=True):
        assert (one.cpu, one.wait) == (pytest.approx(other.cpu), pytest.approx(other.wait, abs=0.03))


def test_inputs_do_not_look_at_whole_jobs():
    without = record()
    without["rounds"] = [{**one, "points": []} for one in without["rounds"]]
    assert inputs_of(without) == inputs_of(record())


@pytest.mark.parametrize(("slower", "passed"), [(1.0, 3), (1.1, 3), (1.25, 2), (0.8, 2)])
def test_jobs_that_were_predicted_well_enough_pass(slower, passed):
    checks = scenarios.check(record(slower), inputs_of(record(slower)))
    assert sum(one.passed for one in checks) == passed


def test_blocks_hold_every_file_once():
    inputs = inputs_of(record())
    for kind, at_most in (("short", 4096), ("short", math.inf), ("long", 7)):
        tasks = scenarios.blocks(inputs.kinds[kind], kind, at_most)
        files = scenarios.DOCUMENTS // scenarios.FILES[kind]
        assert len(tasks) == min(files, at_most)
        assert sum(task.read for task in tasks) == pytest.approx(70.0 * scenarios.DOCUMENTS)
        assert sum(task.cpu for task in tasks) == pytest.approx(4e-4 * scenarios.DOCUMENTS + 0.01 * files)


def test_no_job_ends_before_its_scarcest_resource():
    tasks = [scenarios.Task(2.0, 100.0, 50.0)] * 50
    for options in ({}, {"bandwidth": 20.0}, {"hand_out": Step(3.0)}, {"driver": (Step(900.0),)}):
        cluster = Cluster(4, 4, 4, driver_apart=True, **options)
        limit = scenarios.bounds(cluster, tasks)
        assert simulate(cluster, tasks).seconds >= max(limit.values()) - 1e-6
        assert (
            max(limit, key=limit.get)
            == {0: "cores", 1: "network", 2: "scheduler", 3: "start-up"}[
                ["", "bandwidth", "hand_out", "driver"].index(next(iter(options), ""))
            ]
        )


def test_a_command_is_watched_with_all_that_it_starts():
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    seen = watch(["python3", "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"])
    assert seen.cpu >= 0.5 and seen.taken[0][0] == 0.0
    with pytest.raises(RuntimeError, match="no such thing"):
        watch(["python3", "-c", "raise SystemExit('no such thing')"])


def test_the_page_is_what_the_record_says():
    kept = json.loads((ROOT / "benchmarks" / "scale" / "measured.json").read_text())
    page, inputs = (ROOT / "docs" / "SCALE.md").read_text(), inputs_of(kept)
    checks = scenarios.check(kept, inputs)
    for part in (document._verdict(checks), document._stages(inputs), document._checks(checks)):
        assert part in page, "docs/SCALE.md is not of this record: make scale-page"
