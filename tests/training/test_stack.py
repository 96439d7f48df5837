"""Several models of one architecture as one stacked model; tests/training/test_engine.py trains them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from mpad.config import PRESETS, MPADConfig, TrainingConfig
from mpad.errors import InputError
from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.model import MPAD
from mpad.training.engine import stack_models
from mpad.training.loop import train
from mpad.training.task import Task, make_examples

DEVICE = "cpu"


def tasks(
    texts,
    labels,
    variant="mpad",
    preset="paper",
    n_models=3,
    dropouts=(0.5, 0.5, 0.5),
    device=DEVICE,
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
