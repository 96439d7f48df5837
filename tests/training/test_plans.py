import numpy as np
import pytest
import torch

from mpad.graph import graphs_of_words
from mpad.graph.batch import CorpusTensors
from mpad.training.examples import make_examples
from mpad.training.plans import Held, Known, Plans

GENERATOR = np.random.default_rng(0)
TEXTS = [" ".join(f"w{k}" for k in GENERATOR.integers(0, 50, n)) for n in GENERATOR.integers(0, 40, 300)]


@pytest.fixture
def corpus():
    return CorpusTensors(graphs_of_words(TEXTS)[0])


def table(steps, models, slots):
    return np.stack([GENERATOR.permutation(300)[: steps * slots].reshape(steps, slots) for _ in range(models)], axis=1)


def test_an_epoch_needs_few_sizes_and_keeps_every_document(corpus):
    plans = Plans(corpus)
    documents = table(9, 2, 32)
    documents[-1, :, 5:] = -1  # a short last batch
    found = plans.cut(documents, [])
    assert 2 <= len({size for _, size in found}) <= 4
    seen = []
    for step, size in found:
        assert (size.nodes + size.graphs) % 128 == 0 and size.documents == 33
        batch = plans.corpus.batch(step, 2, size)
        seen.append(batch.document[:, :-1].tolist())
        real = (batch.node >= 0).sum(1).tolist()
        held = [[d for d in row if d >= 0] for row in batch.document.tolist()]
        assert real == [sum(len(set(TEXTS[d].split())) for d in row) for row in held]
    assert seen == documents.tolist()


def test_recorded_sizes_are_used_again(corpus):
    plans = Plans(corpus)
    first = {size for _, size in plans.cut(table(9, 1, 32), [])}
    again = {size for _, size in plans.cut(table(9, 1, 32), list(first))}
    assert again <= first or len(again - first) == 1


def test_targets_and_weights_are_found_by_document(corpus):
    targets, weights = np.arange(300) % 3, np.linspace(0, 1, 300).astype(np.float32)
    known = Known(corpus, [make_examples(corpus, np.arange(10, 60), targets, weights)])
    plans = Plans(corpus)
    ((step, size),) = plans.cut(np.array([[[12, 59, -1]]]), [])
    found, weight, real = known.look_up(plans.corpus.batch(step, 1, size))
    assert found[0, :2].tolist() == [0, 2] and real.tolist() == [[1, 1, 0, 0]]
    assert torch.allclose(weight, torch.tensor([[weights[12], weights[59], 0.0, 0.0]]))


def test_held_out_documents_know_their_part(corpus):
    targets = np.zeros(300, np.int64)
    parts = [[make_examples(corpus, np.arange(n), targets)] for n in (5,)]
    parts.append([make_examples(corpus, np.arange(5, 8), targets)])
    held = Held(Plans(corpus), parts)
    batch = Plans(corpus).corpus.batch(held.planned[0][0], 1, held.planned[0][1])
    assert held.parts(batch).sum(2).flatten().tolist() == [5, 3] and held.counts.tolist() == [[5], [3]]
