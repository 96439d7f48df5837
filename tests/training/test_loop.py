import numpy as np
import pytest
import torch

from mpad import MPADClassifier
from mpad.config import TrainingConfig
from mpad.errors import InputError, NotFinite
from mpad.training.engine import Engine
from mpad.training.loop import shuffled_batches
from mpad.training.task import CLASSIFY


def quick(**options):
    defaults = {
        "hidden": 8,
        "vector_size": 8,
        "max_epochs": 3,
        "device": "cpu",
        "learning_rate": 0.01,
        "batch_size": 16,
        "random_state": 0,
    }
    return MPADClassifier(**{"preset": "paper", **defaults, **options})


def test_the_best_epoch_is_kept(fruit_corpus):
    texts, labels = fruit_corpus
    classifier = quick(max_epochs=12).fit(texts[40:], labels[40:], validation=(texts[:40], labels[:40]))
    best = max(report.validation_accuracy for report in classifier.history_)
    assert classifier.history_[classifier.best_epoch_ - 1].validation_accuracy == best
    assert classifier.score(texts[:40], labels[:40]) == pytest.approx(best)


def test_patience_stops_early(fruit_corpus):
    classifier = quick(max_epochs=100, patience=3).fit(*fruit_corpus)
    assert classifier.n_iter_ < 100


def test_seeds_repeat_and_leave_the_callers_generators_alone(fruit_corpus):
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002 -- the caller's own legacy generator
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    one, same = (quick().fit(*fruit_corpus).predict_proba(fruit_corpus[0]) for _ in range(2))
    other = quick(random_state=1).fit(*fruit_corpus).predict_proba(fruit_corpus[0])
    assert np.array_equal(one, same) and not np.allclose(one, other)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == np.random.get_state()[1].tolist()  # noqa: NPY002


def test_reports_go_to_the_sink(fruit_corpus, capsys):
    seen = []
    quick().fit(*fruit_corpus, sink=seen.append)
    assert [report.epoch for report in seen] == [1, 2, 3] and seen[0].is_best
    assert capsys.readouterr() == ("", "")
    quick(verbose=True, max_epochs=1).fit(*fruit_corpus)
    first, *_ = capsys.readouterr().err.splitlines()
    assert first.startswith("epoch   1/1") and "accuracy" in first
    quick(preset="best", verbose=True, max_epochs=1).fit(*fruit_corpus)
    first, *_ = capsys.readouterr().err.splitlines()
    assert first.startswith("epoch   1/1") and "accuracy" not in first  # the network is not the model that is saved


def test_ctrl_c_keeps_the_best_model_so_far(fruit_corpus):
    def interrupt(report):
        if report.epoch == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quick(max_epochs=50).fit(*fruit_corpus, sink=interrupt)
    classifier = quick(max_epochs=50).fit(*fruit_corpus, sink=interrupt, keep_interrupted=True)
    assert classifier.interrupted_ and classifier.n_iter_ == 4 and 1 <= classifier.best_epoch_ <= 4
    assert np.isfinite(classifier.predict_proba(["an apple"])).all()


def test_diverged_training_is_no_model(fruit_corpus):
    with pytest.raises(NotFinite, match=r"training diverged in epoch \d+.*learning_rate is 1e\+30; try 1e\+29"):
        quick(learning_rate=1e30, max_epochs=20, patience=None).fit(*fruit_corpus)


def test_halving_the_rate(monkeypatch):
    factors = []
    monkeypatch.setattr(Engine, "set_learning_rate", lambda self, factor: factors.append(factor))
    quick(preset="authors", max_epochs=101, patience=None, hidden=2).fit(["a", "b", "a c", "b c"], [0, 1, 0, 1])
    assert factors == [1.0] * 50 + [0.5] * 50 + [0.25]


def test_batches_are_reshuffled_and_never_of_one():
    generator = np.random.default_rng(0)
    first, second = (shuffled_batches(33, 16, generator) for _ in range(2))
    assert [len(batch) for batch in first] == [16, 17]
    assert sorted(np.concatenate(first)) == list(range(33))
    assert not np.array_equal(first[0], second[0])
    assert [len(batch) for batch in shuffled_batches(1, 16, generator)] == [1]


def test_weights_in_the_loss():
    logits, targets = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    alone = CLASSIFY.mean(logits, targets, torch.tensor([0.0, 2.0, 0.0, 0.0]))
    assert torch.isclose(alone, torch.nn.functional.cross_entropy(logits[1:2], targets[1:2]))


def test_sample_weights_shift_the_answer(fruit_corpus):
    texts, labels = ["a", "b"] * 20, ["x", "x", "y", "y"] * 10  # the text says nothing
    heavy = [10.0 if label == "x" else 0.1 for label in labels]
    probability = (
        quick(max_epochs=20, validation_fraction=0).fit(texts, labels, sample_weight=heavy).predict_proba(["a"])
    )
    assert probability[0, 0] > 0.9
    probability = (
        quick(max_epochs=20, validation_fraction=0, class_weight={"y": 50.0}).fit(texts, labels).predict_proba(["a"])
    )
    assert probability[0, 1] > 0.9


@pytest.mark.parametrize("options", [{"max_epochs": 0}, {"batch_size": 0}, {"learning_rate": 0.0}, {"patience": 0}])
def test_bad_settings(options):
    with pytest.raises(InputError):
        TrainingConfig(**options)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_on_a_gpu_as_on_a_cpu(fruit_corpus):
    texts, labels = fruit_corpus
    classifier = quick(max_epochs=30, patience=None, device="cuda").fit(texts, labels)
    assert classifier.model_.network.device.type == "cuda" and classifier.score(texts, labels) > 0.9
