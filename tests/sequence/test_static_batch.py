"""Batches of planned sizes say what those of exact sizes say."""

import numpy as np
import pytest
import torch

from mpad.dropout import DropoutCounter, set_dropout_counter
from mpad.graph.batch import CorpusTensors
from mpad.graph.build import GraphConfig, build_graphs
from mpad.paper.networks.baselines import BASELINES, find_baseline
from mpad.sequence.batch import WordTensors
from mpad.sequence.static_batch import StaticGraphs, StaticWords, find_shape, round_up
from mpad.text.tokenizer import as_tokenizer
from mpad.text.vocabulary import learn_vocabulary

TEXTS = ["a b. c! d e f g a b", "", "b b", "c", "a. b. c. d.", "e f g e f g a"]
READING_WORDS = [name for name, (network, _) in BASELINES.items() if not network.reads_trees]


def corpus_of(network):
    _, encoded = learn_vocabulary(TEXTS, as_tokenizer("kim"), sentences=network.by_sentence)
    if network.graph is not None:
        corpus = CorpusTensors(build_graphs(encoded, network.graph))
        return corpus, StaticGraphs(corpus)
    corpus = WordTensors(encoded)
    return corpus, StaticWords(corpus)


@pytest.mark.parametrize("name", READING_WORDS)
@pytest.mark.parametrize("chosen", [[0, 1, 2, 3], [5], [1], [4, 0, 5]])
def test_every_network_answers_the_same_and_learns_the_same(name, chosen):
    torch.manual_seed(0)
    kind, config = find_baseline(name)
    network = kind(config(2, 4, 12, 0.0, True))
    torch.nn.init.normal_(network.vectors)
    network.eval() if name != "dan" else network.train()  # dan drops words by a rate of its own
    set_dropout_counter(network, DropoutCounter([0]))  # the same at every call
    if name == "dan":
        network.word_dropout.rates = (0.0,)
    corpus, planner = corpus_of(network)
    exact = network(corpus.take(torch.tensor(chosen))).logits
    exact.square().sum().backward()
    gradients = {key: value.grad.clone() for key, value in network.named_parameters() if value.grad is not None}
    network.zero_grad()
    documents = torch.tensor([*chosen, -1, -1])
    planned = network(planner.batch(documents, planner.shape(np.array(chosen)))).logits
    assert planned.shape[0] == len(documents) and torch.allclose(planned[:-2], exact, atol=1e-5)
    planned[:-2].square().sum().backward()
    for key, value in network.named_parameters():
        if key in gradients:
            assert torch.allclose(value.grad, gradients[key], atol=1e-4), key


def test_sizes_are_rounded_up_by_at_most_a_quarter():
    assert [round_up(n) for n in (0, 1, 3, 8, 9, 17, 33, 100)] == [1, 1, 3, 8, 10, 20, 40, 112]
    assert all(n <= round_up(n) <= 1.25 * n for n in range(1, 5000))


def test_a_recorded_room_serves_a_little_smaller_ones():
    assert find_shape((10, 4), [(12, 4), (11, 4), (9, 9)]) == (11, 4)
    assert find_shape((10, 4), [(16, 4), (10, 3)]) is None


def test_graphs_are_filled_up_by_a_dummy_document():
    _, encoded = learn_vocabulary(TEXTS, as_tokenizer("kim"))
    planner = StaticGraphs(CorpusTensors(build_graphs(encoded, GraphConfig())))
    batch = planner.batch(torch.tensor([2, 5, -1]), (20, 30))
    assert batch.size.tolist() == [1, 4, 15] and batch.owner.tolist() == [0] + [1] * 4 + [2] * 15
    real = batch.weight > 0
    assert int(real.sum()) == 4 and bool((batch.target[~real] == 19).all())
