"""Integrated gradients: they add up, and point where occlusion points."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from mpad import MPADClassifier
from mpad.explain import explain
from mpad.explain.document import log_odds, trace_document
from mpad.explain.gradients import gradient_weights
from mpad.explain.methods import weigh
from mpad.explain.terminal import as_text
from mpad.graph import GraphConfig, build_graphs

TEXT = "The apple was in it. He had not a saw, and the apple was good"
OPTIONS = [
    {},
    {"preset": "authors"},
    {"master_node": False},
    {"renormalise": False},
    {"combine": "identity"},
    {"master_skip": False},
    {"window": 4, "directed": False},
    {"variant": "clique"},
    {"variant": "path", "preset": "authors"},
    {"variant": "sentence-att", "steps": 1},
]


@pytest.fixture(scope="module", params=OPTIONS, ids=str)
def model(request, fruit_corpus):
    given = {"hidden": 8, "vector_size": 8, "max_epochs": 6, "learning_rate": 0.01, "batch_size": 32, "random_state": 0}
    return MPADClassifier(**{"preset": "paper", **given, "device": "cpu", **request.param}).fit(*fruit_corpus).model_


@pytest.mark.parametrize("variant", ["mpad", "clique"])
def test_the_linear_part_has_its_share(variant, fruit_corpus):
    """Words add up to the whole rise from nothing at all, network and potentials; what is linear is told apart."""
    given = {"hidden": 8, "vector_size": 8, "max_epochs": 6, "random_state": 0, "device": "cpu"}
    model = MPADClassifier(variant, **given).fit(*fruit_corpus).model_
    document = trace_document(model, TEXT)
    parts = gradient_weights(document, 0)
    silent = copy.deepcopy(model.network)
    silent.vectors.data.zero_()
    mute = replace(model, network=silent, potentials=None).answer(document.graphs).logits
    nothing = model.potentials.network * mute + model.potentials.constant
    whole = lead(model, document.graphs) - float(log_odds(torch.from_numpy(nothing), 0, False)[0])
    assert parts.words.sum() == pytest.approx(whole, abs=0.03 * max(abs(whole), 1)) and not parts.note
    nodes, edges = model.potentials.shares(document.graphs)
    assert parts.word_potentials.sum() == pytest.approx(
        float((nodes[:, 0] - nodes[:, 1]).sum() + (edges[:, 0] - edges[:, 1]).sum()), rel=1e-3
    )  # of two classes, what the linear part adds to the log-odds is exact
    assert parts.edge_potentials == pytest.approx(edges[:, 0] - edges[:, 1], abs=1e-4)
    explanation = explain(model, TEXT, "fruit")
    assert explanation.words[1].word == "apple" and explanation.words[1].potential > 0
    assert "linear" in as_text(explanation)


def lead(model, graphs):
    return float(log_odds(torch.from_numpy(model.answer(graphs).logits), 0, False)[0])


def test_the_weights_of_words_add_up(model):
    """To what all word vectors together bring: checked against a model whose vectors are all zero."""
    document = trace_document(model, TEXT)
    parts = gradient_weights(document, 0)
    silent = copy.deepcopy(model.network)
    silent.vectors.data.zero_()
    whole = lead(model, document.graphs) - lead(model.with_network(silent), document.graphs)
    assert parts.words.sum() == pytest.approx(whole, abs=0.03 * max(abs(whole), 1)) and not parts.note
    assert parts.sentences.sum() == pytest.approx(parts.words.sum())


def test_edges_add_up_to_what_they_bring_together(model):
    """Without renormalisation, silenced edges are edges that are not there."""
    document = trace_document(model, TEXT)
    edges = gradient_weights(document, 0).edges
    assert len(edges) == len(document.graphs.source)
    if not model.network.config.renormalise:
        ids = model.vocabulary.encode([TEXT], model.tokenizer, model.network.by_sentence)
        unlinked = build_graphs(ids, GraphConfig(window=1))
        whole = lead(model, document.graphs) - lead(model, unlinked)
        assert edges.sum() == pytest.approx(whole, abs=0.03 * max(abs(whole), 1))


def test_a_single_edge_is_worth_what_its_message_brings(model):
    """One edge in all: its weight is the whole difference, whatever the denominators."""
    document = trace_document(model, "apple saw")
    if len(document.graphs.source) != 1:
        pytest.skip("both directions are edges here")
    (weight,) = gradient_weights(document, 0).edges
    assert np.isfinite(weight)


def test_it_agrees_with_occlusion_on_what_tells(fitted_flat):
    document = trace_document(fitted_flat.model_, "it was the plum that he had")
    gradients, occlusion = (weigh(document, 0, method).words for method in ("gradients", "occlusion"))
    assert gradients.argmax() == occlusion.argmax() == 3


def test_a_repeated_word_shares_its_weight(fitted_flat):
    explanation = fitted_flat.explain("plum and plum", method="gradients")
    assert explanation.words[0].weight == explanation.words[2].weight > 0


def test_many_labels(fruit_corpus):
    texts, labels = fruit_corpus
    y = np.array([[label == "fruit", label == "tool"] for label in labels], int)
    model = MPADClassifier(hidden=8, vector_size=8, max_epochs=3, random_state=0, device="cpu").fit(texts, y)
    assert model.explain("an apple", method="gradients").words


def test_what_does_not_add_up_is_said(fitted_flat, monkeypatch):
    from mpad.explain import gradients

    monkeypatch.setattr(gradients, "_POINTS", (1,))
    monkeypatch.setattr(gradients, "_GAP", 1e-9)
    assert "miss their expected sum" in fitted_flat.explain(TEXT, method="gradients").note


def test_explaining_leaves_the_model_alone_meanwhile(fitted_flat):
    """Answers are the same while another thread explains: the network's own vectors are never swapped."""
    from threading import Thread

    model, text = fitted_flat.model_, "the apple was not a saw and the drill was a plum " * 20
    before = model.predict_proba([text])
    explaining = Thread(target=lambda: [fitted_flat.explain(text) for _ in range(3)])
    explaining.start()
    while explaining.is_alive():
        assert np.array_equal(model.predict_proba([text]), before)
    explaining.join()
