"""Networks over parse trees: their equations on small trees, and the estimator's contract."""

import random

import numpy as np
import pytest
import torch

from mpad.errors import InputError
from mpad.paper import zoo
from mpad.paper.networks.baselines import find_baseline
from mpad.sequence.trees import TreeTensors, pack_trees
from mpad.text.tokenizer import as_tokenizer
from mpad.text.vocabulary import learn_vocabulary

NAMES = ("tree-lstm", "drnn")


def make(name, **options):
    network, config = find_baseline(name)
    made = network(config(5, 2, 6, 0.5, False, **options)).eval()
    made.set_vectors(torch.arange(12, dtype=torch.float32).view(6, 2) / 10)
    return made


def batch_of(*texts):
    _, corpus = learn_vocabulary(texts, as_tokenizer("mpad.sequence.trees:tree_words"))
    return TreeTensors(pack_trees(texts, corpus, 5)).take(torch.arange(len(texts)))


@torch.no_grad()
def test_tree_lstm_on_two_leaves_worked_out_by_hand():
    network = make("tree-lstm", hidden=3)

    def leaf(word):
        i, o, u = network.leaf(network.vectors[word]).chunk(3)
        c = torch.sigmoid(i) * torch.tanh(u)
        return torch.sigmoid(o) * torch.tanh(c), c

    (h_left, c_left), (h_right, c_right) = leaf(0), leaf(1)
    i, f_left, f_right, o, u = network.inner(torch.cat([h_left, h_right])).chunk(5)
    c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f_left) * c_left + torch.sigmoid(f_right) * c_right
    found = network(batch_of("(3 (2 a) (4 b))")).vectors[0]
    assert torch.allclose(found, torch.sigmoid(o) * torch.tanh(c), atol=1e-6)


@torch.no_grad()
def test_drnn_on_two_leaves_worked_out_by_hand():
    network = make("drnn", hidden=3, layers=2)
    network.bias.copy_(torch.tensor([[0.1, 0.2, 0.3], [-0.1, 0.0, 0.1]]))
    left, right = network.vectors[0], network.vectors[1]
    first = torch.relu(network.from_word(left)[:3] + network.from_word(right)[3:] + network.bias[0])
    leaves = [torch.relu(network.up_of_word(x) + network.bias[1]) for x in (left, right)]
    heard = network.from_child[1](leaves[0])[:3] + network.from_child[1](leaves[1])[3:]
    root = torch.relu(heard + network.up[0](first) + network.bias[1])
    assert torch.allclose(network(batch_of("(3 (2 a) (4 b))")).vectors[0], root, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_every_labelled_node_is_learnt_from(name):
    network = make(name, hidden=3).train()
    network.input_dropout.p = network.dropout.p = 0.0
    batch = batch_of("(3 (2 a) (4 b))")
    output = network(batch)
    logits = network.classes(
        network.states(network.vectors[batch.word.clamp(min=0)] * (batch.word >= 0)[:, None], batch)
    )
    expected = torch.nn.functional.cross_entropy(logits[:2], torch.tensor([2, 4]), reduction="sum")
    assert output.extra.item() == pytest.approx(expected.item(), rel=1e-5) and network.eval()(batch).extra is None


def some_trees(n):
    """Trees whose grade hangs on one word, of different shapes."""
    generator = random.Random(0)

    def grow(words, grade):
        if len(words) == 1:
            return f"({4 if words[0] == 'good' else 0 if words[0] == 'bad' else 2} {words[0]})"
        cut = generator.randrange(1, len(words))
        return f"({grade} {grow(words[:cut], grade)} {grow(words[cut:], grade)})"

    found = []
    for number in range(n):
        words = [generator.choice(["a", "film", "the", "it", "of"]) for _ in range(generator.randint(1, 7))]
        words.insert(generator.randrange(len(words) + 1), "good" if number % 2 else "bad")
        found.append(grow(words, 4 if number % 2 else 0))
    return found, ["pos" if number % 2 else "neg" for number in range(n)]


@pytest.fixture(scope="module", params=NAMES)
def fitted(request):
    texts, labels = some_trees(32)
    options = {
        "hidden": 16,
        "vector_size": 16,
        "max_epochs": 40,
        "patience": None,
        "learning_rate": 0.01,
        "dropout": 0.1,
    }
    model = zoo.make(request.param, **options, device="cpu", random_state=0, validation_fraction=0.0)
    return model.fit(texts, labels), texts, labels


def test_it_overfits_and_answers_alike_in_any_batch(fitted, tmp_path):
    model, texts, labels = fitted
    assert model.score(texts, labels) == 1.0
    alone = np.concatenate([model.decision_function([text]) for text in texts])
    assert np.allclose(model.decision_function(texts), alone, atol=1e-4)
    model.save(tmp_path / "model")
    assert np.array_equal(zoo.load(tmp_path / "model", "cpu").predict_proba(texts), model.predict_proba(texts))


def test_text_without_trees_says_what_is_needed(fitted):
    with pytest.raises(InputError, match="models over trees need parsed text"):
        fitted[0].predict(["a good film"])
    with pytest.raises(InputError, match="models over trees need parsed text"):
        zoo.make("tree-lstm").fit(["a good film", "a bad film"], ["pos", "neg"])
