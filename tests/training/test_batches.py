from functools import partial

import numpy as np
import pytest
import torch

from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.training.batches import DynamicBatches, StaticGraphBatches, Targets, table
from mpad.training.task import make_examples

GENERATOR = np.random.default_rng(0)
TEXTS = [" ".join(f"w{k}" for k in GENERATOR.integers(0, 50, n)) for n in GENERATOR.integers(0, 40, 300)]


@pytest.fixture
def corpus():
    return CorpusTensors(graphs_of_words(TEXTS)[0])


def documents_of(steps, models, slots):
    return np.stack([GENERATOR.permutation(300)[: steps * slots].reshape(steps, slots) for _ in range(models)], axis=1)


def test_an_epoch_needs_few_shapes_and_keeps_every_document(corpus):
    source = StaticGraphBatches(corpus, 2)
    documents = documents_of(9, 2, 32)
    documents[-1, :, 5:] = -1  # a short last batch
    steps = source.steps(documents, [])
    assert 2 <= len({shape for _, shape in steps}) <= 4
    seen = []
    for given, shape in steps:
        assert (shape.nodes + shape.graphs) % 128 == 0 and shape.documents == 33
        batch, held = source.batch(given, shape)
        seen.append(held[:, :-1].tolist())
        real = (batch.node >= 0).sum(1).tolist()
        known = [[d for d in row if d >= 0] for row in held.tolist()]
        assert real == [sum(len(set(TEXTS[d].split())) for d in row) for row in known]
    assert seen == documents.tolist()


def test_recorded_shapes_are_used_again(corpus):
    source = StaticGraphBatches(corpus, 1)
    first = {shape for _, shape in source.steps(documents_of(9, 1, 32), [])}
    again = {shape for _, shape in source.steps(documents_of(9, 1, 32), first)}
    assert again <= first or len(again - first) == 1


def test_targets_and_weights_are_found_by_document(corpus):
    targets, weights = np.arange(300) % 3, np.linspace(0, 1, 300).astype(np.float32)
    known = Targets([make_examples(corpus, np.arange(10, 60), targets, weights)])
    found, weight, real = known.look_up(torch.tensor([[12, 59, -1]]))
    assert found[0, :2].tolist() == [0, 2] and real.tolist() == [[1, 1, 0]]
    assert torch.allclose(weight, torch.tensor([[weights[12], weights[59], 0.0]]))


@pytest.mark.parametrize("make", [DynamicBatches, partial(StaticGraphBatches, n_models=2)])
def test_held_out_documents_are_all_seen_once(corpus, make):
    source, parts = make(corpus), [np.arange(250), np.arange(100, 130)]
    parts = parts if make is not DynamicBatches else parts[:1]
    seen = [[] for _ in parts]
    for given, shape in source.steps(source.held_out(parts), []):
        _, held = source.batch(given, shape)
        for model, row in enumerate(held.tolist()):
            seen[model] += [document for document in row if document >= 0]
    assert [sorted(part) for part in seen] == [part.tolist() for part in parts]


def test_a_table_is_filled_up():
    parts = [[np.array([1, 2]), np.array([3])], [np.array([4])]]
    assert table(parts).tolist() == [[[1, 2], [4, -1]], [[3, -1], [-1, -1]]]
    assert table(parts, 3).shape == (2, 2, 3)
