"""Chunks side by side give what one after another gives."""

import os
import subprocess
import sys
import threading

import pytest

from mpad.inference import fused


def test_results_come_in_order_on_several_threads(monkeypatch):
    monkeypatch.setattr(fused, "cores", lambda: 3)
    monkeypatch.setattr(fused, "_pool", None)
    both = threading.Barrier(2, timeout=200)  # passes only if two threads are there at once

    def work(part):
        if part < 2:
            both.wait()
        return 10 * part

    assert fused.parallel_map(work, range(20)) == [10 * part for part in range(20)]


def test_one_core_starts_no_threads(monkeypatch):
    monkeypatch.setattr(fused, "cores", lambda: 1)
    me = threading.current_thread()
    assert fused.parallel_map(lambda part: threading.current_thread() is me, [1, 2, 3]) == [True] * 3


@pytest.mark.parametrize(("said", "expected"), [("1", 1), ("1,4", 1), ("0", 1)])
def test_omp_num_threads_is_heard(said, expected, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert fused.cores() == expected


@pytest.mark.parametrize("said", ["", "many", "10000"])
def test_no_more_cores_than_there_are(said, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    there = fused.cores()
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert fused.cores() == there


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_starts_threads_of_its_own():
    code = """
import os
from mpad.inference import fused
fused.cores = lambda: 2
assert fused.parallel_map(str, [1, 2, 3]) == ["1", "2", "3"]
child = os.fork()
if child == 0:
    os._exit(0 if fused.parallel_map(str, [4, 5]) == ["4", "5"] else 1)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=600)


def test_a_thread_that_outlives_the_main_one_still_gets_its_answers():
    code = """
import threading, time
from mpad.inference import fused
fused.cores = lambda: 2
def late():
    threading.main_thread().join()
    time.sleep(0.2)
    print(fused.parallel_map(str, [1, 2, 3]))
threading.Thread(target=late).start()
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=600, capture_output=True, text=True)
    assert done.stdout.strip() == "['1', '2', '3']"
