"""The simulation keeps to what is known without it: sums, conservation, and queueing theory."""

import math
import random
from dataclasses import replace

import pytest
from benchmarks.scale.shared import Clock, Shared, cores_speed, link_speed
from benchmarks.scale.simulation import Cluster, Step, Task, simulate
from hypothesis import given, settings
from hypothesis import strategies as st

PLAIN = Cluster(workers=1, cores=1, per_machine=1)
WORK = st.lists(st.floats(0.01, 20), min_size=1, max_size=30)


def tasks_of(seconds):
    return [Task(one, read=10 * one, write=one) for one in seconds]


@settings(deadline=None)
@given(WORK, st.floats(0, 5), st.floats(0, 5))
def test_one_worker_takes_the_sum_of_the_work_and_its_start(work, start, wait):
    cluster = replace(PLAIN, worker=Step(start, wait), driver=(Step(0.3, 0.2),), end=Step(0.1), hand_out=Step(0.01, 0))
    result = simulate(cluster, tasks_of(work))
    assert result.seconds == pytest.approx(0.6 + start + wait + sum(work) + 0.01 * len(work))
    assert result.cpu == pytest.approx(0.4 + start + sum(work) + 0.01 * len(work))


@settings(deadline=None)
@given(WORK, st.integers(1, 12))
def test_with_a_core_each_more_workers_are_within_grahams_bound_and_never_lose_to_one(work, workers):
    result = simulate(Cluster(workers, cores=1, per_machine=1), tasks_of(work))
    ideal = max(max(work), sum(work) / workers)
    assert ideal - 1e-9 <= result.seconds <= sum(work) / workers + max(work) * (1 - 1 / workers) + 1e-9
    assert result.seconds <= sum(work) + 1e-9


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 12))
def test_of_equal_tasks_one_worker_more_is_never_slower(number, workers):
    fewer, more = (
        simulate(Cluster(n, cores=1, per_machine=1), tasks_of([2.0] * number)) for n in (workers, workers + 1)
    )
    assert more.seconds <= fewer.seconds + 1e-9
    assert fewer.seconds == pytest.approx(2.0 * math.ceil(number / workers))


@settings(deadline=None, max_examples=60)
@given(WORK, st.integers(1, 6), st.floats(0.001, 0.1), st.booleans(), st.integers(0, 1000))
def test_every_task_is_done_exactly_once_whatever_fails(work, workers, rate, speculative, seed):
    work = [min(one, 5.0) for one in work]  # one of 20 s with a failure every 10 would seldom end
    cluster = Cluster(
        workers,
        cores=2,
        per_machine=2,
        worker=Step(0.5),
        hand_out=Step(0.01, 0.01),
        failures=rate,
        slowdowns=(1.0, 1.0, 3.0),
        bandwidth=100.0,
        speculate=1.5 if speculative else math.inf,
    )
    result = simulate(cluster, tasks_of(work), seed)
    assert result.completions == [1] * len(work)
    assert result.attempts >= len(work)
    assert (result.wasted > 0) <= (result.attempts > len(work))
    assert result.cpu >= sum(work) + result.wasted - 1e-6


def test_failures_cost_time_and_a_worker_that_never_fails_wastes_nothing():
    cluster = Cluster(4, cores=1, per_machine=1, worker=Step(1.0))
    tasks = tasks_of([5.0] * 40)
    sound, failing = simulate(cluster, tasks), simulate(replace(cluster, failures=0.05), tasks)
    assert sound.wasted == sound.failures == 0 and sound.attempts == 40
    assert failing.failures > 0 and failing.wasted > 0 and failing.seconds > sound.seconds


def test_processes_share_the_cores_of_their_machine():
    four = Cluster(4, cores=2, per_machine=4)
    assert simulate(four, tasks_of([1.0] * 4)).seconds == pytest.approx(2.0)
    assert simulate(replace(four, contention=1.25), tasks_of([1.0] * 4)).seconds == pytest.approx(2.5)
    assert simulate(replace(four, workers=1, contention=1.25), tasks_of([1.0] * 4)).seconds == pytest.approx(4.0)
    crowded = replace(four, crowding=1.1)
    assert simulate(crowded, tasks_of([1.0] * 4)).seconds == pytest.approx(2.2)
    assert simulate(replace(crowded, workers=2), tasks_of([1.0] * 4)).seconds == pytest.approx(2.0)
    taken = replace(four, taken=((0.0, 1.0), (1.0, 0.0)))  # others use one core during the first second
    assert simulate(taken, tasks_of([1.0] * 4)).seconds == pytest.approx(2.5)


def test_the_driver_waits_for_its_workers_to_leave():
    four = Cluster(4, cores=2, per_machine=4, leave=0.5, end=Step(0.0, 0.25))
    assert simulate(four, tasks_of([1.0] * 4)).seconds == pytest.approx(2.0 + 1.0 + 0.25)


def test_transfers_share_the_storage():
    cluster = Cluster(4, cores=4, per_machine=4, bandwidth=100.0)
    tasks = [Task(0.0, read=100.0)] * 4
    assert simulate(cluster, tasks).seconds == pytest.approx(4.0)
    assert simulate(replace(cluster, link=10.0), tasks).seconds == pytest.approx(10.0)
    assert simulate(cluster, tasks).storage_used == pytest.approx(1.0)


def test_a_slow_driver_holds_up_fast_workers():
    cluster = Cluster(100, cores=100, per_machine=100, hand_out=Step(0.1), driver_apart=True)
    result = simulate(cluster, tasks_of([1.0] * 200))
    assert result.seconds == pytest.approx(200 * 0.1 + 1.0)
    assert result.driver_used > 0.9


def test_second_attempts_rescue_what_a_slow_worker_holds_up():
    cluster = Cluster(10, cores=1, per_machine=1, slow_workers=(0.1, 40.0))
    tasks = tasks_of([1.0] * 100)
    held_up, rescued = simulate(cluster, tasks), simulate(replace(cluster, speculate=1.5), tasks)
    assert held_up.seconds == pytest.approx(40.0) and rescued.seconds < 20.0
    assert rescued.completions == [1] * 100 and rescued.wasted > 0


def poisson(rate, number, seed):
    draw, now, times = random.Random(seed), 0.0, []
    for _ in range(number):
        now += draw.expovariate(rate)
        times.append((now, draw.expovariate(1.0)))
    return times


@pytest.mark.parametrize("rate", [0.5, 0.8])
def test_one_worker_with_random_arrivals_waits_as_the_m_m_1_queue(rate):
    tasks = [Task(work, arrives=at) for at, work in poisson(rate, 30_000, seed=1)]
    latencies = simulate(PLAIN, tasks).latencies
    assert sum(latencies) / len(latencies) == pytest.approx(1 / (1 - rate), rel=0.1)


def test_two_workers_wait_as_the_m_m_2_queue():
    tasks = [Task(work, arrives=at) for at, work in poisson(1.6, 30_000, seed=2)]
    latencies = simulate(replace(PLAIN, workers=2), tasks).latencies
    assert sum(latencies) / len(latencies) == pytest.approx(1 / (1 - 0.8**2), rel=0.1)


def test_processor_sharing_has_the_mean_time_of_its_theory_whatever_the_work_is_like():
    """M/G/1 under processor sharing: E[T] = E[S] / (1 - ρ), for constant work too, where a queue would be shorter."""
    clock = Clock()
    shared, times = Shared(clock, cores_speed(1)), []
    for at, _ in poisson(0.7, 30_000, seed=3):
        clock.at(at, lambda at=at: shared.add(1.0, lambda: times.append(clock.now - at)))
    clock.run(lambda: len(times) == 30_000)
    assert sum(times) / len(times) == pytest.approx(1 / (1 - 0.7), rel=0.1)
    assert shared.done == pytest.approx(30_000)


def test_a_job_that_is_dropped_says_what_was_left_and_speeds_the_others_up():
    clock, ended = Clock(), []
    shared = Shared(clock, link_speed(10.0))
    first = shared.add(100.0, lambda: ended.append("never"))
    shared.add(40.0, lambda: ended.append(clock.now))
    clock.at(4.0, lambda: ended.append(shared.drop(first)))
    clock.run(lambda: len(ended) == 2)
    assert ended == [pytest.approx(80.0), pytest.approx(6.0)]


def test_work_that_nobody_can_do_is_an_error_not_an_endless_loop():
    with pytest.raises(RuntimeError, match="nothing is left"):
        Clock().run(lambda: False)
