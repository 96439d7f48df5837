"""What every rival must do: overfit, answer alike in any batch, take any length, save and load."""

import numpy as np
import pytest
import torch

from mpad.errors import InputError, StoreError
from mpad.paper import zoo
from mpad.paper.networks.baselines import BASELINES, baseline_options, find_baseline
from mpad.sequence.batch import WordTensors
from mpad.text.vocabulary import EncodedCorpus

SMALL = {
    "cnn": {"maps": 8, "widths": (2, 3)},
    "dan": {"hidden": 16, "layers": 2, "word_dropout": 0.1},
    "lstmn": {"hidden": 16},
    "c-lstm": {"maps": 16, "hidden": 16},
    "disan": {"hidden": 16},
    "lstm-grnn": {"hidden": 16},
    "hn-att": {"hidden": 8},
    "widemlp": {"vector_size": 64},
    "texting": {"hidden": 16},
}


def quick(name, **options):
    shared = {"vector_size": 16, "max_epochs": 60, "patience": None, "learning_rate": 0.01, "batch_size": 16}
    own = {**shared, "dropout": 0.1, "device": "cpu", "random_state": 0, **SMALL[name], **options}
    return zoo.make(name, **own)


def test_every_rival_is_tried_here():
    trees = {name for name, (network, _) in BASELINES.items() if network.reads_trees}
    assert set(SMALL) | trees == set(BASELINES) and trees == {"tree-lstm", "drnn"}  # those in test_trees


@pytest.fixture(scope="module", params=list(SMALL))
def fitted(request, fruit_corpus):
    texts, labels = fruit_corpus[0][:32], fruit_corpus[1][:32]
    return request.param, quick(request.param, validation_fraction=0.0).fit(texts, labels), texts, labels


def test_it_overfits_32_documents(fitted):
    _, model, texts, labels = fitted
    assert model.score(texts, labels) == 1.0


def test_an_answer_does_not_depend_on_the_batch(fitted):
    _, model, texts, _ = fitted
    together = model.decision_function(texts)
    alone = np.concatenate([model.decision_function([text]) for text in texts])
    assert np.allclose(together, alone, atol=1e-4)


def test_any_length_gets_an_answer(fitted):
    _, model, _, _ = fitted
    texts = ["", "!", "apple", "never seen", "saw. " * 300, "the apple of " * 200]
    probabilities = model.predict_proba(texts)
    assert np.isfinite(probabilities).all() and np.allclose(probabilities.sum(1), 1)
    assert model.transform(texts).shape[0] == len(texts) and model.transform([]).shape[0] == 0


def test_saved_and_loaded_it_says_the_same(fitted, tmp_path):
    name, model, texts, _ = fitted
    model.save(tmp_path / "model")
    loaded = zoo.load(tmp_path / "model", device="cpu")
    assert np.array_equal(loaded.predict_proba(texts), model.predict_proba(texts))
    assert (
        loaded.get_params()["model"] == name
        and loaded.options == model.options
        or loaded.options
        == {key: list(value) if isinstance(value, tuple) else value for key, value in (model.options or {}).items()}
    )
    from mpad import inference

    with pytest.raises(StoreError, match=f"the model is a '{name}'"):
        inference.load(tmp_path / "model")


def test_a_seed_repeats(fruit_corpus):
    texts, labels = fruit_corpus
    one, other = (quick("cnn", max_epochs=2).fit(texts, labels).predict_proba(texts) for _ in range(2))
    assert np.array_equal(one, other)


def test_what_cannot_be_made_is_told():
    with pytest.raises(InputError, match="no model 'cnnn'"):
        zoo.make("cnnn")
    with pytest.raises(InputError, match="'cnn' has no option depth"):
        zoo.make("cnn").set_params(options={"depth": 3}).fit(["a", "b"], [0, 1])
    with pytest.raises(InputError, match="two channels need learn_vectors"):
        find_baseline("cnn")[1](2, 4, 5, channels="two")
    assert baseline_options("dan") == {"layers", "hidden", "word_dropout"}


def batch_of(*documents, sentences=None):
    """Documents as lists of word ids; `sentences` cuts the only document."""
    flat = np.array([word for document in documents for word in document], np.int32)
    ends = np.cumsum([0, *[len(document) for document in documents]])
    starts = ends if sentences is None else np.cumsum([0, *sentences])
    counts = np.arange(len(documents) + 1) if sentences is None else np.array([0, len(sentences)])
    return WordTensors(EncodedCorpus(flat, starts, counts)).take(torch.arange(len(documents)))


def make(name, width=2, n_words=6, **options):
    network, config = find_baseline(name)
    made = network(config(2, width, n_words, 0.5, name == "widemlp", **options)).eval()
    made.set_vectors(torch.arange(n_words * width, dtype=torch.float32).view(n_words, width) / 10)
    return made


@torch.no_grad()
def test_dan_is_a_mean_through_dense_layers():
    dan = make("dan", layers=1, hidden=3)
    mean = dan.vectors[[1, 4, 4]].mean(0)
    expected = dan.classes(torch.relu(dan.layers[0](mean)))
    assert torch.allclose(dan(batch_of([1, 4, 4])).logits[0], expected, atol=1e-6)


@torch.no_grad()
def test_cnn_is_the_maximum_over_windows_worked_out_by_hand():
    cnn = make("cnn", widths=(2,), maps=1, max_norm=100.0)
    cnn.convolutions[0].weight.copy_(torch.tensor([[[1.0, 2.0], [0.0, -1.0]]]))  # (map, width of vector, place)
    cnn.convolutions[0].bias.fill_(0.05)
    a, b = cnn.vectors[1], cnn.vectors[5]  # windows: (0, a), (a, b), (b, 0)
    windows = [2 * a[0] - a[1], a[0] + 2 * b[0] - b[1], b[0]]
    assert cnn(batch_of([1, 5], [2] * 7)).vectors[0].item() == pytest.approx(
        max(0.0, *[float(w) + 0.05 for w in windows])
    )


@torch.no_grad()
def test_cnn_cuts_the_weights_of_a_class_down():
    cnn = make("cnn", widths=(1,), maps=2, max_norm=1.0)
    cnn.classes.weight.copy_(torch.tensor([[3.0, 4.0], [0.3, 0.4]]))
    output = cnn(batch_of([1]))
    expected = output.vectors @ torch.tensor([[0.6, 0.8], [0.3, 0.4]]).T + cnn.classes.bias
    assert torch.allclose(output.logits, expected, atol=1e-5)


@torch.no_grad()
def test_two_channels_start_alike():
    network, config = find_baseline("cnn")
    two = network(config(2, 2, 6, 0.5, True, channels="two", widths=(1,), maps=3)).eval()
    rows = torch.randn(6, 2)
    two.set_vectors(rows)
    layer = two.convolutions[0]
    doubled = torch.relu((2 * rows[[1, 3]] @ layer.weight[..., 0].T + layer.bias).amax(0))
    assert torch.allclose(two(batch_of([1, 3])).vectors[0], doubled, atol=1e-6)


@torch.no_grad()
def test_lstmn_reads_its_first_two_words_as_an_lstm_does():
    """With one state on the tape attention is 1: h̃ and c̃ are that state, as in an LSTM."""
    lstmn = make("lstmn", hidden=3)
    cell = torch.nn.LSTMCell(2, 3)
    order = [0, 1, 3, 2]  # torch: input, forget, new, output; here: input, forget, output, new

    def reordered(weight):
        parts = weight.chunk(4)
        return torch.cat([parts[k] for k in order])

    cell.weight_ih.copy_(reordered(lstmn.gates_of_word.weight))
    cell.weight_hh.copy_(reordered(lstmn.gates_of_memory.weight))
    cell.bias_ih.copy_(reordered(lstmn.gates_of_word.bias))
    cell.bias_hh.zero_()
    x = lstmn.vectors[[2, 5]]
    first = cell(x[:1])
    second = cell(x[1:], first)
    assert torch.allclose(lstmn(batch_of([2, 5])).vectors[0], (first[0] + second[0])[0] / 2, atol=1e-6)


def test_disan_masks_of_three_words():
    from mpad.paper.networks.disan import directional_mask

    assert directional_mask(3, forward=True).tolist() == [[False] * 3, [True, False, False], [True, True, False]]
    assert directional_mask(3, forward=False).tolist() == [[False, True, True], [False, False, True], [False] * 3]


@torch.no_grad()
def test_disan_sees_earlier_words_forwards_and_later_ones_backwards():
    from mpad.paper.networks.disan import DirectionalAttention

    torch.manual_seed(0)
    x, real = torch.randn(1, 3, 4), torch.ones(1, 3, dtype=torch.bool)
    changed = x.clone()
    changed[0, 1] += 1
    for forward, moved in ((True, [False, True, True]), (False, [True, True, False])):
        layer = DirectionalAttention(4, 5, forward)
        difference = (layer(x, real) - layer(changed, real)).abs().amax(-1)[0] > 1e-6
        assert difference.tolist() == moved
    layer = DirectionalAttention(4, 5, forward=True)  # the second word sees the first alone: s = h₁
    h = torch.nn.functional.elu(layer.map(x))[0]
    gate = torch.sigmoid(layer.gate_of_context(h[0]) + layer.gate_of_self(h[1]))
    assert torch.allclose(layer(x, real)[0, 1], gate * h[1] + (1 - gate) * h[0], atol=1e-6)


@torch.no_grad()
def test_c_lstm_reads_windows_in_order():
    c_lstm = make("c-lstm", width=2, maps=3, hidden=4) if False else make("c-lstm", maps=3, hidden=4)
    x = torch.nn.functional.pad(c_lstm.vectors[[1, 2, 3, 4]].T[None], (0, 0))
    windows = torch.relu(c_lstm.windows(x)).mT
    _, (last, _) = c_lstm.lstm(windows)
    assert windows.shape[1] == 2 and torch.allclose(
        c_lstm(batch_of([1, 2, 3, 4], [5])).vectors[0], last[0, 0], atol=1e-6
    )


@torch.no_grad()
def test_hn_att_attends_at_both_levels():
    hn_att = make("hn-att", hidden=3)
    output = hn_att(batch_of([1, 2, 3, 4, 5], sentences=[2, 3]))
    words, sentences = output.word_attention[0], output.sentence_attention[0]
    assert words.shape == (5,) and sentences.shape == (2,)
    assert words[:2].sum().item() == pytest.approx(1) and words[2:].sum().item() == pytest.approx(1)
    assert sentences.sum().item() == pytest.approx(1)
    states, _ = hn_att.words(hn_att.vectors[[1, 2]][None])
    score = hn_att.word_attention.context(torch.tanh(hn_att.word_attention.align(states)))[0, :, 0]
    assert torch.allclose(words[:2], torch.softmax(score, 0), atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("sentences", ["lstm", "cnn"])
def test_lstm_grnn_is_the_mean_of_its_document_states(sentences):
    grnn = make("lstm-grnn", hidden=3, sentences=sentences)
    found = grnn(batch_of([1, 2, 3, 4, 5], sentences=[2, 3])).vectors[0]
    if sentences == "lstm":
        vectors = [grnn.lstm(grnn.vectors[list(part)][None])[1][0][0, 0] for part in ((1, 2), (3, 4, 5))]
    else:
        first = torch.nn.functional.pad(grnn.vectors[[1, 2]], (0, 0, 0, 1))  # shorter than the widest window
        means = [layer(x.T[None])[0].mean(1) for x in (grnn.vectors[[3, 4, 5]],) for layer in grnn.convolutions]
        of_first = [layer(first.T[None])[0][:, : max(1, 3 - h)].mean(1) for h, layer in enumerate(grnn.convolutions, 1)]
        vectors = [torch.tanh(torch.stack(part)).mean(0) for part in (of_first, means)]
    states, _ = grnn.documents(torch.stack(vectors)[None])
    assert torch.allclose(found, states[0].mean(0), atol=1e-6)


@torch.no_grad()
def test_widemlp_is_a_dense_layer_over_word_frequencies():
    wide = make("widemlp", width=4)
    frequency = torch.tensor([0.0, 2, 0, 1, 0, 0]) / 3
    expected = wide.classes(torch.relu(frequency @ wide.vectors + wide.bias))
    assert torch.allclose(wide(batch_of([1, 3, 1])).logits[0], expected, atol=1e-6)


@torch.no_grad()
def test_texting_on_a_graph_of_three_words_worked_out_by_hand():
    from mpad.graph import graphs_of_words
    from mpad.graph.batch import CorpusTensors
    from mpad.paper.networks.texting import symmetric_weights

    graphs, _ = graphs_of_words(["a b c"], window=2, directed=False)  # a – b – c
    batch = CorpusTensors(graphs).take(torch.tensor([0]))
    assert torch.allclose(symmetric_weights(batch), torch.full((4,), 1 / 2**0.5))
    network = make("texting", steps=1, hidden=3)
    h = torch.tanh(network.enter(network.vectors[:3]))
    a = network.messages[0](h)
    heard = torch.stack([a[1], a[0] + a[2], a[1]]) / 2**0.5
    h = network.gates[0](h, heard)
    g = torch.sigmoid(network.soft(h)) * torch.tanh(network.feature(h))
    assert torch.allclose(network(batch).vectors[0], g.mean(0) + g.amax(0), atol=1e-6)


def test_shared_settings_reach_those_that_have_them():
    shared = {"vectors": "v.bin", "max_epochs": 3}
    assert zoo.make_with("wmd", shared).vectors == "v.bin" and zoo.make_with("cnn", shared).max_epochs == 3
    assert zoo.make_with("widemlp", shared).vectors is None and zoo.make_with("tfidf-svm", shared).get_params() == {}
