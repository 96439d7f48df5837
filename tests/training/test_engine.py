"""One engine: the same training in batches as long as they are, in static shapes, and recorded on a GPU."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from mpad import MPADClassifier
from mpad.config import PRESETS, VARIANTS, MPADConfig, TrainingConfig
from mpad.errors import InputError
from mpad.evaluate.cross_validation import cross_validate
from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.model import MPAD
from mpad.paper import zoo
from mpad.paper.networks.baselines import BASELINES
from mpad.training import loop
from mpad.training.batches import StaticGraphBatches, StaticSequenceBatches
from mpad.training.engine import Engine, find_engine, stack_models
from mpad.training.loop import train, train_in_turn
from mpad.training.task import Task, make_examples

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
READING_WORDS = [name for name, (network, _) in BASELINES.items() if not network.reads_trees]
SMALL = {"cnn": {"maps": 8}, "widemlp": {"vector_size": 32}}


def tasks(
    texts,
    labels,
    variant="mpad",
    preset="paper",
    n_models=3,
    dropouts=(0.5, 0.5, 0.5),
    device="cpu",
    dtype=torch.float32,
    epochs=4,
    held_out=20,
    learned=80,
    **options,
):
    """Models with different seeds, folds and learning rates over one corpus; folds differ in size."""
    hierarchical = variant != "mpad"
    graphs, vocabulary = graphs_of_words(texts, per="sentence" if hierarchical else "document")
    corpus = CorpusTensors(graphs, device)
    targets = (np.array(labels) == "tool").astype(np.int64)
    vectors = torch.randn(vocabulary.n_rows, 6, generator=torch.Generator().manual_seed(0))
    made = []
    for number in range(n_models):
        torch.manual_seed(number)
        config = MPADConfig(
            2, 6, vocabulary.n_rows, variant, hidden=8, dropout=dropouts[number], **PRESETS[preset].network, **options
        )
        network = MPAD(config).to(device, dtype)
        with torch.no_grad():
            network.vectors.copy_(vectors)
        order = np.random.default_rng(number).permutation(len(texts))
        rest = order[held_out : held_out + learned + number]  # parts of different sizes
        held, watched = order[:held_out], order[held_out + learned + n_models :]
        training = TrainingConfig(epochs, None, 16, 0.01 / (number + 1), seed=number + 5)
        checks, examples = make_examples(corpus, held, targets), make_examples(corpus, rest, targets)
        made.append(Task(network, examples, checks, training, watched=make_examples(corpus, watched, targets)))
    return made


def in_static_shapes(tasks, before=None):
    """As on a GPU; on a CPU steps are not recorded, but run."""
    corpus, network = tasks[0].examples.corpus, tasks[0].network
    if network.stackable:
        return Engine(tasks, StaticGraphBatches(corpus, len(tasks)))
    if before is not None and before.fits(tasks[0]):
        before.adopt(tasks[0])
        return before
    return Engine(tasks, StaticSequenceBatches(corpus))


def test_stacked_models_learn_what_each_learns_alone(fruit_corpus):
    """Folds, learning rates and dropout rates differ. Triton's interpreter runs the kernels, slowly."""
    pytest.importorskip("triton")
    texts, labels = (part[:30] for part in fruit_corpus)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    given = {"n_models": 2, "dropouts": (0.0, 0.5), "epochs": 1, "held_out": 4, "learned": 20, "device": device}
    alone = train(tasks(texts, labels, **given))
    made = tasks(texts, labels, **given)
    together = list(train_in_turn(made, engine=in_static_shapes(made)))
    for one, other in zip(together, alone, strict=True):
        for mine, yours in zip(one.reports, other.reports, strict=True):
            assert mine.train_loss == pytest.approx(yours.train_loss, abs=1e-3)
            assert mine.validation_loss == pytest.approx(yours.validation_loss, abs=1e-3)
            assert mine.watched_accuracy == yours.watched_accuracy


def test_each_model_stops_by_its_own_patience(fruit_corpus):
    made = tasks(*fruit_corpus)
    made = [
        replace(task, config=replace(task.config, max_epochs=30, patience=1 + 3 * k)) for k, task in enumerate(made)
    ]
    histories = train(made)
    assert len({len(history.reports) for history in histories}) > 1
    for task, history in zip(made, histories, strict=True):
        best = history.reports[history.best_epoch - 1]
        assert best.validation_accuracy == max(report.validation_accuracy for report in history.reports)
        assert len(history.reports) <= history.best_epoch + 30 and not task.network.training


def test_only_one_architecture_at_a_time():
    one, other = MPAD(MPADConfig(2, 4, 9)), MPAD(MPADConfig(2, 4, 9, steps=3))
    with pytest.raises(InputError, match="one architecture"):
        stack_models([one, other])
    with pytest.raises(InputError, match="no tasks"):
        train([])


def test_batch_sizes_must_agree(fruit_corpus):
    made = tasks(*fruit_corpus)
    made[1] = replace(made[1], config=replace(made[1].config, batch_size=8))
    with pytest.raises(InputError, match="same batch_size; found 16, 8"):
        train(made)


def test_equal_vectors_are_kept_once(fruit_corpus):
    networks = [task.network for task in tasks(*fruit_corpus)]
    assert stack_models(networks).vectors.ndim == 2
    with torch.no_grad():
        networks[1].vectors[0] += 1
    assert stack_models(networks).vectors.ndim == 3


# ── Networks that cannot be stacked ──


def rival(name, device="cpu", **options):
    given = {"vector_size": 16, "max_epochs": 4, "batch_size": 16, "dropout": 0.0, "random_state": 0, "device": device}
    return zoo.make(name, **{**given, **SMALL.get(name, {}), **options})


def losses(name, corpus, **options):
    results = cross_validate(rival(name, **options), *corpus, cv=2)
    return [
        (report.train_loss, report.validation_loss, report.watched_accuracy)
        for result in results
        for report in result.reports
    ]


@pytest.fixture
def static_shapes(monkeypatch):
    seen = []

    def find(tasks, before=None):
        seen.append(in_static_shapes(tasks, before))
        return seen[-1]

    monkeypatch.setattr(loop, "find_engine", find)
    return seen


@pytest.mark.parametrize("name", [name for name in READING_WORDS if name != "dan"])  # dan drops words all the same
def test_sequences_in_static_shapes(name, fruit_corpus, request):
    plain = losses(name, fruit_corpus)
    request.getfixturevalue("static_shapes")
    static = losses(name, fruit_corpus)
    assert len(plain) == len(static)
    for one, other in zip(plain, static, strict=True):
        assert one == pytest.approx(other, abs=2e-3)


@gpu
@pytest.mark.parametrize("variant", ["mpad", "path"])
def test_features_of_nodes_in_static_shapes(variant, tiny_transformer, fruit_corpus, request, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    options = {"hidden": 8, "max_epochs": 3, "batch_size": 16, "preset": "paper", "random_state": 0, "device": "cuda"}
    estimator = MPADClassifier(variant, features=tiny_transformer, **options)

    def reports():
        results = cross_validate(estimator, *fruit_corpus, cv=2)
        return [(one.train_loss, one.validation_loss) for result in results for one in result.reports]

    plain = reports()
    engines = request.getfixturevalue("static_shapes")
    assert reports() == [pytest.approx(one, abs=1e-4) for one in plain] and len(engines) == 1


def test_the_next_fold_moves_into_the_same_tensors(fruit_corpus, static_shapes):
    results = cross_validate(rival("cnn"), *fruit_corpus, cv=3)
    assert len(results) == 3 and len({id(engine) for engine in static_shapes}) == 1
    weights = [result.estimator.model_.network.classes.weight for result in results]
    assert not torch.equal(weights[0], weights[1])


def test_a_seed_decides_dropout(fruit_corpus, static_shapes):
    one, again, other = (losses("cnn", fruit_corpus, dropout=0.5, random_state=seed) for seed in (1, 1, 2))
    assert one == again != other


def test_on_a_cpu_batches_are_as_long_as_they_are(fruit_corpus):
    assert find_engine(tasks(*fruit_corpus)[:1])._source is None
    assert rival("cnn").fit(*fruit_corpus).score(*fruit_corpus) > 0.6


# ── On a GPU ──


def on_gpu(corpus, variant="mpad", preset="paper", **options):
    return tasks(*corpus, variant, preset, device="cuda", dtype=torch.float32, **options)


@gpu
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_recorded_steps_learn_what_plain_ones_learn(fruit_corpus, variant, preset, dropout):
    """With the same dropout masks; products are rounded on a GPU."""
    dropouts = (dropout,) * 3
    made = on_gpu(fruit_corpus, variant, preset, dropouts=dropouts)
    assert isinstance(find_engine(made)._source, StaticGraphBatches)
    fast = train(made)
    plain = train(tasks(*fruit_corpus, variant, preset, dropouts=dropouts))
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


@gpu
@pytest.mark.parametrize("name", READING_WORDS)
def test_rivals_learn_on_a_gpu_what_they_learn_on_a_cpu(name, fruit_corpus):
    plain, fast = losses(name, fruit_corpus), losses(name, fruit_corpus, device="cuda")
    for one, other in zip(plain[:2], fast[:2], strict=True):
        assert one[:2] == pytest.approx(other[:2], abs=0.2 if name == "dan" else 0.02)


@gpu
def test_two_trainings_at_once_do_not_mix(fruit_corpus):
    """Each has its stream, its recordings and the memory that its kernels add up into."""
    from threading import Thread

    alone = train(on_gpu(fruit_corpus))
    engines = [find_engine(on_gpu(fruit_corpus)) for _ in range(2)]
    found = {}

    def run(number, engine):
        found[number] = list(train_in_turn(engine._tasks, engine=engine))

    threads = [Thread(target=run, args=given) for given in enumerate(engines)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for histories in found.values():
        for one, other in zip(histories, alone, strict=True):
            assert one.reports[0].train_loss == pytest.approx(other.reports[0].train_loss, abs=5e-3)
    assert len(found) == 2
