"""Recorded steps on a GPU: the same training as operator by operator, and as alone."""

from dataclasses import replace

import pytest
import torch
from tests.training.test_stack import tasks

from mpad import MPADClassifier
from mpad.models.config import VARIANTS
from mpad.training.eager import Eager
from mpad.training.loop import find_engine, train
from mpad.training.replay import Replay, can_replay

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_on_a_cpu_steps_run_operator_by_operator(fruit_corpus):
    made = tasks(*fruit_corpus)
    assert not can_replay(made) and isinstance(find_engine(made), Eager)


def on_gpu(corpus, variant="mpad", **options):
    return tasks(*corpus, variant, device="cuda", dtype=torch.float32, **options)


@gpu
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("authors", [True, False])
def test_recorded_steps_learn_what_plain_ones_learn(fruit_corpus, variant, authors):
    """Without dropout, whose masks are drawn differently on a CPU; products are rounded on a GPU."""
    dropouts = (0.0, 0.0, 0.0)
    made = on_gpu(fruit_corpus, variant, authors=authors, dropouts=dropouts)
    assert isinstance(find_engine(made), Replay)
    fast = train(made)
    plain = train(tasks(*fruit_corpus, variant, authors=authors, dropouts=dropouts, dtype=torch.float32))
    for one, other in zip(fast, plain, strict=True):
        assert one.reports[0].train_loss == pytest.approx(other.reports[0].train_loss, abs=0.02)
        assert one.reports[-1].validation_loss == pytest.approx(other.reports[-1].validation_loss, abs=0.1)


@gpu
@pytest.mark.parametrize(
    "options", [{}, {"learn_vectors": True}, {"dropouts": (0.0, 0.3, 0.5)}, {"master_node": False}]
)
def test_together_as_alone_on_a_gpu(fruit_corpus, options):
    """Sums run in another order, so the first epochs agree to a thousandth, and no more is promised."""
    together = train(on_gpu(fruit_corpus, **options))
    for number in range(3):
        (alone,) = train([on_gpu(fruit_corpus, **options)[number]])
        for one, other in zip(together[number].reports[:2], alone.reports[:2], strict=True):
            assert one.train_loss == pytest.approx(other.train_loss, abs=5e-3)


@gpu
def test_patience_and_best_weights_on_a_gpu(fruit_corpus):
    made = on_gpu(fruit_corpus)
    longer = [replace(task.config, max_epochs=20, patience=1 + 3 * k) for k, task in enumerate(made)]
    histories = train([replace(task, config=config) for task, config in zip(made, longer, strict=True)])
    for history in histories:
        best = max(report.validation_accuracy for report in history.reports)
        assert history.reports[history.best_epoch - 1].validation_accuracy == best


@gpu
def test_a_classifier_learns_on_a_gpu_and_answers_on_a_cpu(fruit_corpus, tmp_path):
    options = {"hidden": 16, "vector_size": 16, "max_epochs": 30, "learning_rate": 0.01, "batch_size": 32}
    classifier = MPADClassifier(device="cuda", random_state=0, **options).fit(*fruit_corpus)
    assert classifier.score(*fruit_corpus) > 0.9
    classifier.save(tmp_path / "model")
    loaded = MPADClassifier.load(tmp_path / "model", device="cpu")
    assert abs(loaded.predict_proba(fruit_corpus[0]) - classifier.predict_proba(fruit_corpus[0])).max() < 1e-3


@gpu
def test_one_very_long_document_and_wide_states(fruit_corpus):
    """Documents of very different sizes need several recordings; wide rows need smaller tiles."""
    texts, labels = [*fruit_corpus[0], " ".join(f"w{k % 9000}" for k in range(30_000))], [*fruit_corpus[1], "tool"]
    options = {"hidden": 384, "vector_size": 32, "max_epochs": 3, "batch_size": 16, "patience": None}
    classifier = MPADClassifier(device="cuda", random_state=0, **options).fit(texts, labels)
    assert all(0 < report.train_loss < 5 for report in classifier.history_)
