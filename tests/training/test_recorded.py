"""Recorded steps of the rivals: the same training as operator by operator."""

import pytest
import torch

import mpad.training.recorded as recorded
from mpad import zoo
from mpad.cross_validation import cross_validate
from mpad.models.rivals import RIVALS
from mpad.training.eager import Eager
from mpad.training.loop import find_engine

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
READING_WORDS = [name for name, (network, _) in RIVALS.items() if not network.reads_trees]
SMALL = {"cnn": {"maps": 8}, "widemlp": {"vector_size": 32}}


def rival(name, device="cpu", **options):
    given = {"vector_size": 16, "max_epochs": 4, "batch_size": 16, "dropout": 0.0, "random_state": 0, "device": device}
    return zoo.make(name, **{**given, **SMALL.get(name, {}), **options})


class RunAtOnce:
    """A recorder that records nothing: a replay runs the step's operators."""

    def __init__(self, generator):
        self.taken = 0

    def record(self, example, step, changed):
        self.taken += 1
        return type("Recording", (), {"replay": staticmethod(step)})


@pytest.fixture
def as_if_recorded(monkeypatch):
    monkeypatch.setattr(recorded, "Recorder", RunAtOnce)
    monkeypatch.setattr(recorded, "can_record", lambda task: not task.network.reads_trees)


def losses(name, corpus, **options):
    results = cross_validate(rival(name, **options), *corpus, cv=2)
    return [
        (report.train_loss, report.validation_loss, report.watched_accuracy)
        for result in results
        for report in result.reports
    ]


@pytest.mark.parametrize("name", [name for name in READING_WORDS if name != "dan"])  # dan drops words all the same
def test_steps_of_planned_sizes_learn_what_plain_ones_learn(name, fruit_corpus, monkeypatch, request):
    plain = losses(name, fruit_corpus)
    request.getfixturevalue("as_if_recorded")
    planned = losses(name, fruit_corpus)
    assert len(plain) == len(planned)
    for one, other in zip(plain, planned, strict=True):
        assert one == pytest.approx(other, abs=2e-3)


def test_the_next_fold_moves_into_the_same_recordings(fruit_corpus, as_if_recorded, monkeypatch):
    made = []
    monkeypatch.setattr(recorded.Recorded, "__init__", _counting(recorded.Recorded.__init__, made))
    results = cross_validate(rival("cnn"), *fruit_corpus, cv=3)
    assert len(results) == 3 and len(made) == 1
    weights = [result.estimator.model_.network.classes.weight for result in results]
    assert not torch.equal(weights[0], weights[1])


def _counting(original, made):
    def init(self, task):
        made.append(task)
        original(self, task)

    return init


def test_a_seed_decides_dropout(fruit_corpus, as_if_recorded):
    one, again, other = (losses("cnn", fruit_corpus, dropout=0.5, random_state=seed) for seed in (1, 1, 2))
    assert one == again != other


def test_on_a_cpu_steps_run_operator_by_operator(fruit_corpus, monkeypatch):
    seen = []

    def spy(tasks, before=None):
        seen.append(find_engine(tasks, before))
        return seen[-1]

    monkeypatch.setattr("mpad.training.loop.find_engine", spy)
    estimator = rival("cnn").fit(*fruit_corpus)
    assert [type(engine) for engine in seen] == [Eager]
    assert estimator.score(*fruit_corpus) > 0.6


@gpu
@pytest.mark.parametrize("name", READING_WORDS)
def test_on_a_gpu_they_learn_what_a_cpu_learns(name, fruit_corpus):
    plain, fast = losses(name, fruit_corpus), losses(name, fruit_corpus, device="cuda")
    for one, other in zip(plain[:2], fast[:2], strict=True):
        assert one[:2] == pytest.approx(other[:2], abs=0.2 if name == "dan" else 0.02)


@gpu
def test_on_a_gpu_steps_are_recorded(fruit_corpus, monkeypatch):
    seen = []

    def spy(tasks, before=None):
        seen.append(find_engine(tasks, before))
        return seen[-1]

    monkeypatch.setattr("mpad.training.loop.find_engine", spy)
    cross_validate(rival("hn-att", "cuda", dropout=0.5), *fruit_corpus, cv=3)
    assert all(isinstance(engine, recorded.Recorded) for engine in seen) and not isinstance(seen[0], Eager)
    assert len({id(engine) for engine in seen}) == 1
