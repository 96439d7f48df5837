"""The NumPy network and the torch network are one function: random models of every variant and ablation."""

import random

import numpy as np
import pytest
import torch

from mpad import native
from mpad.config import PRESETS, VARIANTS, MPADConfig
from mpad.data.labels import Labels
from mpad.graph import graphs_of_words, to_scipy
from mpad.graph.build import GraphConfig
from mpad.inference import Pipeline, network
from mpad.model import MPAD
from mpad.text.tokenizer import as_tokenizer
from mpad.text.vocabulary import learn_vocabulary


def texts(seed=0):
    """Empty, one-word, repetitive and long documents among ordinary ones."""
    generator = random.Random(seed)
    words = [f"w{k}" for k in range(60)] + ["the"] * 20

    def document(n):
        return " ".join(generator.choice(words) + generator.choice(["", "", "", "."]) for _ in range(n))

    return ["", "x", "the the the", *[document(generator.randint(1, 30)) for _ in range(120)], document(3_000), "? !"]


def random_model(variant="mpad", hidden=8, **options):
    tokenizer = as_tokenizer("kim")
    vocabulary, _ = learn_vocabulary(texts(), tokenizer)
    torch.manual_seed(1)
    network = MPAD(MPADConfig(3, 10, vocabulary.n_rows, variant, hidden=hidden, **options)).eval()
    with torch.no_grad():
        network.vectors.copy_(torch.randn(network.vectors.shape))
        for module in network.modules():  # statistics as after training
            if isinstance(module, torch.nn.BatchNorm1d):
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2)
                module.weight.normal_()
                module.bias.normal_()
    return Pipeline(tokenizer, vocabulary, GraphConfig(), network, Labels(np.array(["a", "b", "c"])))


def all_options():
    for variant in VARIANTS:
        for preset in PRESETS.values():
            yield variant, preset.network
            yield variant, {**preset.network, "steps": 1, "hidden": 5}
            yield variant, {**preset.network, "master_node": False}
            yield variant, {**preset.network, "combine": "identity", "steps": 3}
            yield variant, {**preset.network, "combine": "identity", "master_node": False}
            yield variant, {**preset.network, "master_skip": False}
            yield variant, {**preset.network, "renormalise": False, "steps": 4}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("variant", "options"), list(all_options()))
def test_numpy_and_torch_give_the_same(variant, options, compiled, monkeypatch):
    if compiled and native.library is None:
        pytest.skip("the compiled kernels were not built, or do not run on this processor")
    if not compiled:
        monkeypatch.setattr(native, "library", None)
    model = random_model(variant, **{"hidden": 16, **options})
    graphs = model.pack(texts(1))
    ours, theirs = model.answer(graphs), model.network.answer_by_torch(graphs)
    large = np.abs(theirs.logits).max(axis=1, keepdims=True).clip(min=1)  # without renormalisation sums grow
    assert np.abs((ours.logits - theirs.logits) / large).max() < 1e-5
    probabilities = [model.labels.probabilities(answer.logits) for answer in (ours, theirs)]
    if options.get("renormalise", True):
        assert np.abs(probabilities[0] - probabilities[1]).max() < 1e-5
        assert np.allclose(ours.vectors, theirs.vectors, atol=1e-4)
    assert np.allclose(ours.word_attention, theirs.word_attention, atol=1e-4)
    if variant == "mpad":
        assert ours.sentence_attention is None and theirs.sentence_attention is None
    else:
        assert np.allclose(ours.sentence_attention, theirs.sentence_attention, atol=1e-4)


def test_a_document_alone_or_among_others():
    model = random_model()
    together = model.logits(texts(2))
    alone = np.concatenate([model.logits([text]) for text in texts(2)])
    assert np.allclose(together, alone, atol=1e-5)


def test_no_documents_give_no_rows():
    model = random_model()
    assert model.logits([]).shape == (0, 3) and model.vectors([]).shape == (0, model.network.config.hidden)
    answer = model.answer(model.pack([]))
    assert answer.logits.shape == (0, 3) and answer.word_attention.shape[1] == 0


@pytest.mark.parametrize("window", [1, 5])
def test_other_windows(window):
    plain = random_model()
    model = Pipeline(
        plain.tokenizer, plain.vocabulary, GraphConfig(window, directed=False), plain.network, plain.labels
    )
    graphs = model.pack(texts(3))
    assert np.allclose(model.answer(graphs).logits, model.network.answer_by_torch(graphs).logits, atol=1e-5)


def test_words_met_later_are_looked_up_too():
    """The table of the first step is filled word by word; the order of questions must not matter."""
    first, second = random_model(), random_model()
    first.logits(["w1 w2"])
    assert np.allclose(first.logits(["w2 w3 unheard-of"]), second.logits(["w2 w3 unheard-of"]), atol=1e-6)


def test_a_stray_floating_point_flag_is_no_warning(monkeypatch):
    """OpenBLAS raises "invalid" on some processors, for lanes of a register that it does not use."""
    model = random_model(hidden=5)
    graphs = model.pack(texts(1))
    expected = model.answer(graphs)
    softmax = network.segment_softmax

    def flagged(*given):
        np.multiply(np.float32(np.inf), np.float32(0))
        return softmax(*given)

    monkeypatch.setattr(network, "segment_softmax", flagged)
    assert np.array_equal(model.answer(graphs).logits, expected.logits)


# ── Sums over graphs ──


def test_sums_and_softmax_by_hand_with_empty_runs():
    start = np.array([0, 0, 2, 3, 3])
    x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)
    assert network.segment_sum(x, start).tolist() == [[0, 0], [4, 6], [5, 6], [0, 0]]
    alpha = network.segment_softmax(np.array([1000.0, 1000.0, -1000.0], np.float32), start)
    assert alpha.tolist() == [0.5, 0.5, 1.0]
    nothing = np.array([0, 0])
    assert network.segment_sum(np.zeros((0, 3), np.float32), nothing).tolist() == [[0, 0, 0]]
    assert network.segment_softmax(np.zeros(0, np.float32), nothing).shape == (0,)


@pytest.mark.parametrize("master", [True, False])
@pytest.mark.parametrize("renormalise", [True, False])
def test_words_receive_what_the_matrix_says(master, renormalise):
    graphs, _ = graphs_of_words(["a b c a b d", "", "x", " ".join(f"w{k} the" for k in range(9)), "c c c"])
    n, g = len(graphs.words), graphs.n_graphs
    matrix = np.zeros((n + g, n + g))
    for k in range(g):
        at = slice(graphs.node_start[k], graphs.node_start[k + 1])
        matrix[at, at] = to_scipy(graphs, k, incoming=True).toarray()
        if master:
            matrix[at, n + k] = matrix[n + k, at] = 1
    if renormalise:
        matrix /= np.maximum(matrix.sum(1, keepdims=True), 1e-30)
    matrix = matrix if master else matrix[:n, :n]
    x = np.random.default_rng(0).normal(size=(len(matrix), 3)).astype(np.float32)
    graph = network.WordGraph(graphs, MPADConfig(2, 3, 1, master_node=master, renormalise=renormalise))
    assert np.allclose(graph.aggregate(x), matrix @ x, atol=1e-5)


@pytest.mark.parametrize(
    ("variant", "renormalise", "expected"),
    [("clique", True, [3, 2.5, 1.5, 0]), ("clique", False, [6, 5, 3, 0]), ("path", True, [0, 1, 2, 0])],
)
def test_sentences_receive_from_the_others_or_the_one_before(variant, renormalise, expected):
    graph = network.SentenceGraph(np.array([0, 3, 4]), MPADConfig(2, 3, 1, variant, renormalise=renormalise))
    assert graph.aggregate(np.array([[1.0], [2.0], [4.0], [8.0]], np.float32)).ravel().tolist() == expected
